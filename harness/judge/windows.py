"""A sink whose query writes windows under a watermark, judged by what its batches wrote and not by what they took.

In append mode a window is written by a later batch than those that took its records: the first one whose watermark has
passed its end. In update mode each batch writes the windows of its records, without those that the watermark drops. So
the records are put into the order in which they were written. Every batch, snapshot and next offset becomes a place in
that order. The rest of the judge sees a source that was read in that order, and applies the same rules.

The watermarks are computed from the records and the batches' ranges, and compared with Spark's log: a batch that ran
under another one is a finding like any other. Where that was planned before any fault was injected, no fault did it,
and the scenario does not describe its pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from harness.checkers.closed_windows import WRITTEN, Closed, closed
from harness.judge.injections import Injection, Readings, Seen
from harness.judge.progress_at_injection import may_feed
from harness.judge.read_folder import Run
from harness.ledger import Ledger, Source
from harness.scenario import Finding, Kind, Sink
from harness.scenario.progress import CHECKPOINT
from harness.snapshot import Batch, Offsets, Query, QueryState


@dataclass(frozen=True, kw_only=True)
class ByWriting:
    """What a sink of windows is judged with. `unknown`: windows of which it is not known yet whether they were written;
    `findings` and `error` are about watermarks."""

    run: Run
    readings: Readings
    source: Source
    unknown: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def unclear(run: Run, sink: Sink) -> str:
    """Return why it is not known which batch wrote a window of a sink; empty if it is."""
    why = _unclear(run, sink)
    return f"it is not known which batch wrote a window of {sink.name}: {why}" if why else ""


def by_writing(run: Run, readings: Readings, source: Source, place: int) -> ByWriting:
    """Return the same run in the order of writing, where that is clear. Raises UsageError if what the sink says of its
    windows is no time."""
    sink = run.scenario.sinks[place]
    assert sink.watermark is not None
    query = _feeding(run, sink)[0]
    # Only the batches of the query that feeds the sink count.
    taken = replace(source, batches=query.batches)
    with Ledger(taken, where=f"scenario `{run.scenario.name}`") as ledger:
        records = ledger.timed(sink.watermark)
    numbers, delay_ms = [batch.batch for batch in query.batches], round(sink.watermark.delay_s * 1000)
    found = closed(numbers, records, delay_ms, sink.watermark.mode)
    written = replace(query, batches=tuple(_ranged(batch, found) for batch in query.batches))
    unlike = _unlike(query, found, place, sink)
    return ByWriting(
        run=_run(run, query, written, found),
        readings=Readings(
            steps=tuple(_by_writing(each, written, found) for each in readings.steps),
            ended=tuple(_by_writing(each, written, found) for each in readings.ended),
        ),
        source=replace(source, places=found.places, batches=written.batches),
        unknown=[*_unfinished(written, sink), *_due(found, sink)],
        error=_misfit(unlike, readings.steps, query, sink),
        notes=_notes(found, sink),
        findings=unlike,
    )


def _notes(found: Closed, sink: Sink) -> list[str]:
    """Return what is left out of the windows."""
    late = sum(place.late for place in found.places)
    words = {
        f"{late} records came when their window had ended, and the watermark drops them": late,
        f"{found.nowhere} records have no window (`closes` is NULL), and nothing is said of them": found.nowhere,
    }
    return [f"{sink.name}: {each}" for each, count in words.items() if count]


def _feeding(run: Run, sink: Sink) -> list[Query]:
    return [query for query in run.progressed.queries if query.ours and may_feed(query.checkpoint, sink)]


def _unclear(run: Run, sink: Sink) -> str:
    ours = _feeding(run, sink)
    if run.scenario.pipeline.progress != CHECKPOINT:
        return "the pipeline manages its own offsets, and only Spark's checkpoint says which batches there are"
    if len(ours) != 1:
        many = f"{len(ours)} checkpoints feed it, and each has its own watermarks"
        return many if sink.query or not ours else f"{many}; name one in `query`"
    numbers = [batch.batch for batch in ours[0].batches]
    if not numbers or numbers != list(range(len(numbers))):
        return f"of the batches up to {max(numbers, default=0)}, only {len(numbers)} were seen"
    unseen = [batch.batch for batch in ours[0].batches if batch.watermark_ms is None]
    return f"no reading of Spark's log showed the watermark of batch {unseen[0]}" if unseen else ""


def _unlike(query: Query, found: Closed, place: int, sink: Sink) -> list[Finding]:
    """Return a finding of the first batch that ran under another watermark than the records before it say: those after
    it may only follow."""
    for batch in query.batches:
        if batch.watermark_ms != found.watermarks[batch.batch]:
            logged, ours = _time(batch.watermark_ms or 0), _time(found.watermarks[batch.batch])
            words = f"batch {batch.batch} ran under the watermark {logged}, and by the records before it it is {ours}"
            # Without batch and times in what names it: baseline runs have other batches, and show the same.
            key = {"watermark": sink.watermark.of if sink.watermark else ""}
            kind, batches = Kind.WRONG_AGGREGATE, (batch.batch,)
            return [Finding(kind=kind, sink=sink.name, position=place, key=key, batches=batches, note=words)]
    return []


def _time(watermark_ms: int) -> str:
    try:
        return datetime.fromtimestamp(watermark_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, OSError, ValueError):
        return f"{watermark_ms} ms"


def _misfit(unlike: Sequence[Finding], injections: Sequence[Injection], query: Query, sink: Sink) -> list[str]:
    """Return words for a watermark that was another one before any fault was injected; empty if none was."""
    planned = [_planned(injection, query) for injection in injections]
    return [
        f"the watermark of {sink.name} and the pipeline do not fit: {each.note}. Mend `watermark`, or the pipeline"
        for each in unlike
        if all({*each.batches} <= {*batches} for batches in planned)
    ]


def _planned(injection: Injection, query: Query) -> tuple[int, ...]:
    """Return the batches that were planned when a fault was injected, and whose watermark was in Spark's log by
    then."""
    states = injection.at.snapshot.queries if injection.at is not None else ()
    return next((state.offsets for state in states if state.checkpoint == query.checkpoint), ())


def _unfinished(query: Query, sink: Sink) -> list[str]:
    """A batch that was to write windows and is not committed."""
    left = [
        each.batch for each in query.batches if not each.committed and each.ranges[WRITTEN][1] > each.ranges[WRITTEN][0]
    ]
    return [f"batch {left[0]}, which writes windows of {sink.name}, was never committed"] if left else []


def _due(found: Closed, sink: Sink) -> list[str]:
    """Return windows that Spark writes in a batch without a record, once the last one has moved the watermark."""
    if not found.due:
        return []
    batch = max(found.watermarks) + 1
    words = f"batch {batch}, which closes windows of {found.due} records of {sink.name}, was not seen"
    return [f"{words}: it comes without a record, unless spark.sql.streaming.noDataMicroBatches.enabled is false"]


def _ranged(batch: Batch, found: Closed) -> Batch:
    """Return a batch with what it wrote."""
    return replace(batch, ranges={WRITTEN: (found.ends.get(batch.batch - 1, 0), found.ends[batch.batch])})


def _run(run: Run, query: Query, written: Query, found: Closed) -> Run:
    end = {WRITTEN: found.ends[query.batches[-1].batch]}
    queries = tuple(written if each is query else each for each in run.progressed.queries)
    return replace(run, progressed=replace(run.progressed, queries=queries, batches=written.batches, end=end))


def _by_writing(injection: Injection, query: Query, found: Closed) -> Injection:
    return replace(injection, at=_seen(injection.at, query, found), restart=_seen(injection.restart, query, found))


def _seen(seen: Seen | None, query: Query, found: Closed) -> Seen | None:
    """Return a snapshot in the order of writing."""
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
    """Return how far the newest of these batches wrote."""
    newest = max(batches, default=-1)
    return {WRITTEN: found.ends[newest]} if newest in found.ends else {}
