"""Counts over time: records sent, records committed by Spark (or by the pipeline's own offsets), and the lag between.

Pure. Each curve is a list of (seconds, count): it keeps its value until the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.timeline.counts import Counts
from harness.report.timeline.from_history import Happened
from harness.snapshot import Progressed, Query

Curve = Sequence[tuple[float, int]]
MOST_POINTS = 400
"""More points than this are thinned: no screen shows them apart."""


@dataclass(frozen=True, kw_only=True)
class Curves:
    """What is known over time; a curve is empty where the run folder does not hold it. `rows` are single readings of
    the sinks, not a curve."""

    sent: Curve = ()
    committed: Curve = ()
    lag: Curve = ()
    rows: Curve = ()
    by: str = ""
    """Whose commits they are."""


def curves(run: Happened, progressed: Progressed, counts: Counts | None, *, sink_rows: int | None) -> Curves:
    """Return the curves of a run; `sink_rows` is what the sinks held in the end, None if that is not known."""
    committed, by = _committed(run, progressed, counts)
    sent = _rising(run.sent)
    rows = [*run.read, *([(run.end, sink_rows)] if sink_rows is not None else [])]
    return Curves(
        sent=thinned(sent),
        committed=thinned(committed),
        lag=thinned(_lag(sent, committed)) if sent and committed else (),
        rows=[each for each in rows if each[0] <= run.end],
        by=by,
    )


def _rising(curve: Curve) -> list[tuple[float, int]]:
    out: list[tuple[float, int]] = []
    for seconds, count in curve:
        if not out or count > out[-1][1]:
            out.append((seconds, count))
    return out


def _committed(run: Happened, progressed: Progressed, counts: Counts | None) -> tuple[Curve, str]:
    if counts is None:
        return (), ""
    if progressed.positions:
        curve = [(each.at_s, counts.before(each.next)) for each in progressed.positions]
        return _changing(sorted(curve)), "by the pipeline, in its own offsets"
    ours = {query.checkpoint: query for query in progressed.queries if query.ours}
    each = [_of_query(run, query, counts) for query in ours.values()]
    slowest = " by the slowest query" if len(each) > 1 else ""
    return _slowest(each), f"in Spark's commit log{slowest}"


def _of_query(run: Happened, query: Query, counts: Counts) -> Curve:
    took = {batch.batch: counts.within(batch.ranges) for batch in query.batches}
    first: dict[int, float] = {}
    for work in run.works:
        if work.query == query.checkpoint and work.committed is not None:
            first.setdefault(work.batch, work.committed)
    total, out = 0, []
    for seconds, batch in sorted((seconds, batch) for batch, seconds in first.items()):
        total += took.get(batch, 0)
        out.append((seconds, total))
    return out


def _slowest(curves: Sequence[Curve]) -> Curve:
    """At any time the lowest of several curves, each 0 before it begins."""
    if len(curves) < 2:
        return _changing(curves[0]) if curves else ()
    times = sorted({seconds for curve in curves for seconds, _ in curve})
    return _changing([(seconds, min(value(curve, seconds) for curve in curves)) for seconds in times])


def _changing(curve: Curve) -> list[tuple[float, int]]:
    out: list[tuple[float, int]] = []
    for seconds, count in curve:
        if not out or count != out[-1][1]:
            out.append((seconds, count))
    return out


def value(curve: Curve, seconds: float) -> int:
    """Return what a curve says at a time; 0 before it begins."""
    out = 0
    for begin, count in curve:
        if begin > seconds:
            break
        out = count
    return out


def _lag(sent: Curve, committed: Curve) -> list[tuple[float, int]]:
    """Return sent minus committed, never below 0: the history may have a count of what was sent late."""
    changes = sorted([*((s, 0, c) for s, c in sent), *((s, 1, c) for s, c in committed)])
    now, out = [0, 0], []
    for seconds, which, count in changes:
        now[which] = count
        out.append((seconds, max(0, now[0] - now[1])))
    return out


def thinned(curve: Curve) -> Curve:
    """Return at most so many points, of each interval the highest and the last one."""
    if len(curve) <= MOST_POINTS:
        return curve
    size = -(-len(curve) // (MOST_POINTS // 2))
    out: list[tuple[float, int]] = []
    for place in range(0, len(curve), size):
        part = curve[place : place + size]
        out += sorted({max(part, key=lambda each: each[1]), part[-1]})
    return out
