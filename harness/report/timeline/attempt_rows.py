"""What each attempt of the driver did: when it began and ended, its batches, its commits, and how far it came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.report.escape import plural, visible
from harness.report.failure_text import numbers
from harness.report.timeline.counts import Counts
from harness.report.timeline.from_history import Attempt, Happened
from harness.report.timeline.saved_ranges import range_numbers, saved_ranges
from harness.snapshot import Progressed, Query

MOST = 40
PARTITIONS = 12
NOTHING = "-"


@dataclass(frozen=True, kw_only=True)
class AttemptText:
    """One attempt and one query. `records` is how many its commits cover, `next` the next offset by partition after the
    last of them."""

    attempt: Attempt
    query: str
    worked: str
    committed: str
    records: str
    next: str

    @property
    def how(self) -> str:
        """Return how long after the death before it an attempt began, and what of dead attempts was still alive."""
        attempt = self.attempt
        after = "" if attempt.after_s is None else f", {attempt.after_s:.2f} s after the death"
        beside = f", {plural(attempt.zombies, 'process')} of a dead attempt still alive" if attempt.zombies else ""
        return f"{after}{beside}".removeprefix(", ") or NOTHING

    @property
    def ended(self) -> str:
        """Return when it ended, and whether a fault ended it."""
        attempt = self.attempt
        if attempt.end is None:
            return "when all was read"
        status = "" if attempt.status is None else f", status {attempt.status}"
        return f"{attempt.end:.2f} s{status}, {'by a fault' if attempt.scheduled else 'by no fault'}"


def attempt_rows(run: Happened, progressed: Progressed, counts: Counts | None) -> list[AttemptText]:
    """Return a row for each attempt and each query that it worked on."""
    queries = {query.checkpoint: query for query in progressed.queries}
    out = []
    for attempt in run.attempts:
        mine = {work.query for work in run.works if work.attempt == attempt.number}
        worked = [query for query in run.queries if query in mine]
        own = _own(attempt, progressed, counts) if not worked else None
        out += [own] if own else [_row(run, attempt, query, queries.get(query), counts) for query in worked or [""]]
    return out[:MOST]


def _row(run: Happened, attempt: Attempt, name: str, query: Query | None, counts: Counts | None) -> AttemptText:
    works = [work for work in run.works if work.attempt == attempt.number and work.query == name]
    done = sorted({work.batch for work in works if work.committed is not None})
    ranges = {batch.batch: batch.ranges for batch in (query.batches if query else ())}
    known = [ranges[batch] for batch in done if batch in ranges]
    took = sum(counts.within(each) for each in known) if counts is not None and known else None
    return AttemptText(
        attempt=attempt,
        query=visible(name, 60) or NOTHING,
        worked=numbers(sorted({work.batch for work in works})) if works else NOTHING,
        committed=numbers(done) if done else "none",
        records=NOTHING if took is None else f"{took:,}",
        next=_next(known[-1].items()) if known else NOTHING,
    )


def _own(attempt: Attempt, progressed: Progressed, counts: Counts | None) -> AttemptText | None:
    """Return the row of a pipeline that manages its own offsets: no batches are seen, and it committed what it saved.
    None for any other pipeline, and if no position was seen."""
    saved = [each for each in progressed.positions if each.attempt == attempt.number]
    if not saved:
        return None
    took = None if counts is None else counts.before(saved[-1].next) - counts.before(saved[0].next)
    return AttemptText(
        attempt=attempt,
        query="the pipeline's own offsets",
        worked=NOTHING,
        committed=range_numbers(saved_ranges(progressed.positions)[attempt.number]),
        records=NOTHING if took is None else f"{took:,}",
        next=_next((partition, (0, end)) for partition, end in saved[-1].next.items()) if saved[-1].next else NOTHING,
    )


def _next(ranges: Iterable[tuple[int, Sequence[int]]]) -> str:
    each = [f"{partition}/{end}" for partition, (_, end) in sorted(ranges)]
    left = len(each) - PARTITIONS
    return " ".join(each[:PARTITIONS]) + (f" and {left} more" if left > 0 else "")
