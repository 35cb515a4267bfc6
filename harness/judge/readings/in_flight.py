"""Which query feeds a sink, and how much of what it took next was in flight when the fault was injected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.checkers.offset_ranges import OffsetRange, OffsetRanges, Offsets, between, tail
from harness.judge.injections import Injection
from harness.judge.progress_at_injection import QueryProgress
from harness.judge.readings.scale import Scale, changed
from harness.judge.readings.sink_state import RowsByKey, SinkState
from harness.judge.readings.traces import Traces


def feeding(scale: Scale, found: Sequence[QueryProgress], many: int, at: SinkState) -> QueryProgress | None:
    """Return the progress of the query that feeds the sink: the only one of the run, or the only one with which the
    rows agree. `many` queries may feed it, and `found` are those that had begun."""
    if many > len(found):
        return None
    if len(found) < 2:
        return found[0] if found else None
    # A sink may be late, whether or not the scenario says so: a query that is ahead of it may feed it all the same.
    steps = list(scale.steps(at))
    fit = [progress for progress in found if _agrees(scale, progress, at, steps)]
    if not fit or any(_decisive(progress) != _decisive(fit[0]) for progress in fit):
        return None
    return fit[0] if scale.late or _agrees(scale, fit[0], at, []) else None


def _decisive(progress: QueryProgress) -> tuple[object, ...]:
    """Return the part of a query's progress that decides what was exposed; two that agree in it are equivalent."""
    return progress.low, progress.high, progress.next, progress.after, progress.other


def _agrees(scale: Scale, progress: QueryProgress, at: SinkState, steps: Sequence[tuple[Offsets, RowsByKey]]) -> bool:
    """Return whether each row is what the query's committed or planned batches make of it. The batches of an earlier
    one of the `steps` may make it too."""
    earlier = [then for end, then in steps if not between(progress.low, end)]
    known = [scale.upto(progress.low, at), scale.upto(progress.high, at), *earlier]
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


def _back(ends: Offsets, ranges: OffsetRanges) -> dict[int, int]:
    """Return the offsets without these ranges at their end."""
    begin = {each.partition: each.start for each in ranges}
    return {partition: begin.get(partition, end) for partition, end in ends.items()}


def bounded(scale: Scale, progress: QueryProgress, now: SinkState) -> QueryProgress:
    """Return the progress with `high` at the last record that left something in the sink. The next attempt usually
    reads more than was in flight, since the producer went on."""
    if scale.case.aggregate or not progress.taken:
        return progress
    base, full = scale.upto(progress.low, now), scale.upto(progress.high, now)
    traces = Traces(scale, now, base, full)
    touched = {key for key in changed(base, full) if traces.of(key)}

    def bare(part: OffsetRange) -> bool:
        return not scale.keys((part,)) & touched

    left = tuple(tail(each, bare) for each in progress.taken) if touched else ()
    return replace(progress, high=_back(progress.high, left))
