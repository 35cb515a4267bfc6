"""Which query feeds a sink, and how much of what it took next was in flight when the fault was injected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.checkers.offset_ranges import Offsets, Span, Spans, between, tail
from harness.judge.injections import Injection
from harness.judge.progress_at_injection import Reach
from harness.judge.readings.scale import Scale, changed
from harness.judge.readings.sink_state import RowsByKey, SinkState
from harness.judge.readings.traces import Traces


def feeding(scale: Scale, found: Sequence[Reach], many: int, at: SinkState) -> Reach | None:
    """The query that feeds the sink: the only one of the run, or the only one whose progress the rows agree with.
    `many` may feed it, and `found` are those that had begun."""
    if many > len(found):
        return None
    if len(found) < 2:
        return found[0] if found else None
    # A sink may be late, whether or not the scenario says so: a query that is ahead of it may feed it all the same.
    steps = list(scale.steps(at))
    fit = [reach for reach in found if _agrees(scale, reach, at, steps)]
    if not fit or any(_stood(reach) != _stood(fit[0]) for reach in fit):
        return None
    return fit[0] if scale.late or _agrees(scale, fit[0], at, []) else None


def _stood(reach: Reach) -> tuple[object, ...]:
    """What of a query's progress decides what was exposed: of two that agree in it, either will do."""
    return reach.low, reach.high, reach.next, reach.after, reach.other


def _agrees(scale: Scale, reach: Reach, at: SinkState, steps: Sequence[tuple[Offsets, RowsByKey]]) -> bool:
    """Return whether each row is what the query's committed or planned batches make of it, or what those of an earlier
    one of the `steps` do."""
    earlier = [then for end, then in steps if not between(reach.low, end)]
    known = [scale.upto(reach.low, at), scale.upto(reach.high, at), *earlier]
    keys = {key for held in (*known, at.rows) for key in held}
    return all(at.rows[key] in [held[key] for held in known] for key in keys)


def handed(scale: Scale, injection: Injection) -> str:
    """Return what shows that a writer was at work in the sink, though none of its rows can be read; empty if nothing
    does."""
    assert injection.at is not None
    snapshot = injection.at.snapshot
    if snapshot.writing.get(str(scale.position)):
        return "an open transaction had written into the sink"
    counted, before = snapshot.handed.get(str(scale.position), (0, None))
    rows = 0 if before is None else counted - before
    return f"{rows} rows had been handed to the sink" if rows > 0 else ""


def has(now: Counter[Any], full: Counter[Any]) -> bool:
    """Return whether all of the rows are there; where none are due, whether none is there."""
    return now >= full if full else not now


def _back(ends: Offsets, spans: Spans) -> dict[int, int]:
    """Those offsets, without these stretches at their end."""
    begin = {span.partition: span.start for span in spans}
    return {partition: begin.get(partition, end) for partition, end in ends.items()}


def bounded(scale: Scale, reach: Reach, now: SinkState) -> Reach:
    """What it took next is more than it had in flight, as a rule: the producer went on. In flight was what has left
    something in the sink, up to the last record of it."""
    if scale.case.aggregate or not reach.taken:
        return reach
    base, full = scale.upto(reach.low, now), scale.upto(reach.high, now)
    traces = Traces(scale, now, base, full)
    touched = {key for key in changed(base, full) if traces.of(key)}

    def bare(part: Span) -> bool:
        return not scale.keys((part,)) & touched

    left = tuple(tail(span, bare) for span in reach.taken) if touched else ()
    return replace(reach, high=_back(reach.high, left))
