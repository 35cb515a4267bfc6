"""Which batch wrote the window of each record, by the batches that took the records and the watermark between them.

Spark's rules (one watermark): batch N runs under the latest time of the batches before it, less the delay, never lower
than before, 0 at first. A record of batch N is dropped if its window had ended by the watermark of batch N-1. In append
mode a window is written by the first batch by whose watermark it has ended, with the records of that batch. In update
mode each batch writes the windows of the records that it does not drop. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.scenario.watermark import OutputMode

WRITTEN, NEVER = 0, 1
"""The made-up partitions: records in the order in which they were written, and those that no batch wrote."""


class Timed(NamedTuple):
    """A record, the batch that took it, its time and the end of its window in microseconds; None if unknown."""

    partition: int
    offset: int
    batch: int | None
    time_us: int | None
    closes_us: int | None


class Placed(NamedTuple):
    """A record in the order of writing. `batch` wrote it. It is None where no batch did: the record was `late` and
    dropped, its window is `open`, or no batch was seen to write it."""

    partition: int
    offset: int
    at_partition: int
    at: int
    batch: int | None
    late: bool
    open: bool


@dataclass(frozen=True)
class Closed:
    """By batch, the watermark in milliseconds and the place up to which records are written; the records. `due` counts
    those that a next batch would write, `nowhere` those that a batch took and that have no window."""

    watermarks: Mapping[int, int]
    ends: Mapping[int, int]
    places: tuple[Placed, ...]
    due: int = 0
    nowhere: int = 0


def closed(
    batches: Sequence[int], records: Iterable[Timed], delay_ms: int, mode: OutputMode = OutputMode.APPEND
) -> Closed:
    """`batches` are those of one query, from 0 and without a gap; also those that took no record."""
    known = list(records)
    watermarks, next_ms = _watermarks(batches, known, delay_ms)
    marks = [watermarks[batch] * 1000 for batch in batches]
    written: list[tuple[int, Timed]] = []
    rest: list[tuple[bool, bool, Timed]] = []
    due = 0
    for record in known:
        late = record.batch is not None and _ends_by(record, watermarks.get(record.batch - 1, 0))
        at = len(marks) if late or record.batch is None else _writing(record, record.batch, marks, mode)
        if at < len(marks):
            written.append((batches[at], record))
            continue
        next_one = not late and _ends_by(record, next_ms)
        due += next_one
        rest.append((late, record.batch is not None and not (late or next_one), record))
    written.sort(key=lambda each: (each[0], each[1].closes_us, each[1].partition, each[1].offset))
    places = [Placed(r.partition, r.offset, WRITTEN, at, batch, False, False) for at, (batch, r) in enumerate(written)]
    places += [Placed(r.partition, r.offset, NEVER, at, None, late, open_) for at, (late, open_, r) in enumerate(rest)]
    order = [batch for batch, _ in written]
    ends = {batch: bisect_left(order, batch + 1) for batch in batches}
    nowhere = sum(record.batch is not None and record.closes_us is None for record in known)
    return Closed(watermarks, ends, tuple(places), due, nowhere)


def _watermarks(batches: Sequence[int], records: Sequence[Timed], delay_ms: int) -> tuple[dict[int, int], int]:
    """Return the watermark of each batch, and of the one that would come next."""
    latest: dict[int, int] = {}
    for record in records:
        if record.batch is not None and record.time_us is not None:
            latest[record.batch] = max(record.time_us // 1000, latest.get(record.batch, record.time_us // 1000))
    out, now = dict[int, int](), 0
    for batch in batches:
        out[batch] = now
        now = max(now, latest.get(batch, now + delay_ms) - delay_ms)
    return out, now


def _ends_by(record: Timed, watermark_ms: int) -> bool:
    """Return whether the window of a record that a batch took ends by then."""
    return record.batch is not None and record.closes_us is not None and record.closes_us <= watermark_ms * 1000


def _writing(record: Timed, batch: int, marks: Sequence[int], mode: OutputMode) -> int:
    """Return the place of the batch that writes it: in append mode the first one from its own on whose watermark is not
    before the end, in update mode its own."""
    if record.closes_us is None:
        return len(marks)
    return batch if mode is OutputMode.UPDATE else max(bisect_left(marks, record.closes_us), batch)
