"""A sink whose query writes windows in append mode, judged by what its batches wrote and not by what they took.

A window is written by a later batch than those that took its records: the first one whose watermark has passed its end.
So the records are put into the order in which they were written, and every batch, snapshot and next offset is told in
places of that order. The rest of the judge sees a source that was read in that order, and goes by the same rules. The
watermarks are computed from the records and the batches' ranges; one that Spark's log tells otherwise is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from harness.checkers.closed_windows import WRITTEN, Closed, closed
from harness.effect import Effects, Source
from harness.judge.injections import Injection, Seen
from harness.judge.progress_at_hit import may_feed
from harness.judge.read_folder import Run
from harness.run_folder.snapshot import Batch, Offsets, Query, QueryState
from harness.scenario import Sink


@dataclass(frozen=True)
class ByWriting:
    """What a sink of windows is judged with. `unknown` and `error` say why it cannot be."""

    run: Run
    injections: tuple[Injection, ...]
    source: Source
    unknown: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)


def by_writing(run: Run, injections: tuple[Injection, ...], source: Source, place: int, effects: Effects) -> ByWriting:
    """The same run in the order of writing; `effects` has the records in the order in which they were taken. Raises
    UsageError if what the sink says of its windows is no time."""
    sink = run.scenario.sinks[place]
    assert sink.watermark is not None
    ours = [query for query in run.progressed.queries if query.ours and may_feed(query.checkpoint, sink)]
    why = _unclear(ours, sink)
    batches = () if why else ours[0].batches
    numbers = [batch.batch for batch in batches]
    found = closed(numbers, effects.timed(sink.watermark), round(sink.watermark.delay_s * 1000))
    query = replace(ours[0], batches=tuple(_ranged(batch, found) for batch in batches)) if batches else None
    moved = replace(source, places=found.places, batches=_ranges(query))
    if query is None:
        return ByWriting(run, (), moved, [f"nobody can tell which batch wrote a window of {sink.name}: {why}"])
    hits = tuple(_hit(injection, query, found) for injection in injections)
    return ByWriting(_run(run, query, found), hits, moved, _unfinished(query, sink), _unlike(batches, found, sink))


def _unclear(ours: list[Query], sink: Sink) -> str:
    """Why the order of writing cannot be told; empty if it can."""
    if len(ours) != 1:
        many = f"{len(ours)} checkpoints feed it, each with watermarks of its own"
        return many if sink.query or not ours else f"{many}; name one in `query`"
    numbers = [batch.batch for batch in ours[0].batches]
    if numbers != list(range(len(numbers))):
        return f"of the batches up to {max(numbers)}, only {len(numbers)} were seen"
    unseen = [batch.batch for batch in ours[0].batches if batch.watermark_ms is None]
    return f"Spark's log was not seen to tell the watermark of batch {unseen[0]}" if unseen else ""


def _unlike(batches: tuple[Batch, ...], found: Closed, sink: Sink) -> list[str]:
    """The first batch that ran under another watermark than its records say."""
    for batch in batches:
        if batch.watermark_ms != found.watermarks[batch.batch]:
            logged, ours = _told(batch.watermark_ms or 0), _told(found.watermarks[batch.batch])
            words = f"batch {batch.batch} ran under the watermark {logged}, and by the records before it it is {ours}"
            return [
                f"the watermark of {sink.name} and the pipeline do not fit: {words}. Mend `watermark`, or the pipeline"
            ]
    return []


def _told(watermark_ms: int) -> str:
    try:
        return datetime.fromtimestamp(watermark_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, OSError, ValueError):
        return f"{watermark_ms} ms"


def _unfinished(query: Query, sink: Sink) -> list[str]:
    """A batch that was to write windows and is not committed."""
    left = [
        each.batch for each in query.batches if not each.committed and each.ranges[WRITTEN][1] > each.ranges[WRITTEN][0]
    ]
    return [f"batch {left[0]}, which writes windows of {sink.name}, was never committed"] if left else []


def _ranged(batch: Batch, found: Closed) -> Batch:
    """A batch with what it wrote."""
    return replace(batch, ranges={WRITTEN: (found.ends.get(batch.batch - 1, 0), found.ends[batch.batch])})


def _ranges(query: Query | None) -> list[dict[str, object]]:
    return [{"batch": each.batch, "ranges": each.ranges} for each in query.batches] if query else []


def _run(run: Run, query: Query, found: Closed) -> Run:
    end = {WRITTEN: found.ends[query.batches[-1].batch]}
    others = tuple(
        query if (each.ours, each.checkpoint) == (True, query.checkpoint) else each for each in run.progressed.queries
    )
    return replace(run, progressed=replace(run.progressed, queries=others, batches=query.batches, end=end))


def _hit(injection: Injection, query: Query, found: Closed) -> Injection:
    return replace(injection, at=_seen(injection.at, query, found), restart=_seen(injection.restart, query, found))


def _seen(seen: Seen | None, query: Query, found: Closed) -> Seen | None:
    """A snapshot in the order of writing."""
    if seen is None:
        return None
    states = tuple(
        _state(each, found) if each.checkpoint == query.checkpoint else each for each in seen.snapshot.queries
    )
    return replace(seen, snapshot=replace(seen.snapshot, queries=states))


def _state(state: QueryState, found: Closed) -> QueryState:
    planned, committed = _end(state.offsets, found), _end(state.commits, found)
    return replace(state, planned=planned, committed=committed, planned_most={}, committed_most={})


def _end(batches: tuple[int, ...], found: Closed) -> Offsets:
    """How far the newest of these batches wrote."""
    newest = max(batches, default=-1)
    return {WRITTEN: found.ends[newest]} if newest in found.ends else {}
