"""Which query feeds a sink, and what it had in flight when a fault hit: its progress, as far as the sink bears it out.

Spark's logs say what is planned and what is committed. A pipeline that keeps its offsets itself says only what it
saved, before the sink has the slice or after it; which of the two shows in the sink.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Offsets, Span, Spans, between, highest, tail
from harness.judge.injections import Injection
from harness.judge.progress_at_hit import Reach
from harness.judge.stakes.scale import Scale, changed
from harness.judge.stakes.sink_state import RowsByKey, SinkState
from harness.judge.stakes.traces import Traces


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
    """What of a query's progress decides what was at stake: of two that agree in it, either will do."""
    return reach.low, reach.high, reach.next, reach.after, reach.other


def _agrees(scale: Scale, reach: Reach, at: SinkState, steps: Sequence[tuple[Offsets, RowsByKey]]) -> bool:
    """Is each row what the query's committed or planned batches make of it, or what those of an earlier one of the
    `steps` do?"""
    earlier = [then for end, then in steps if not between(reach.low, end)]
    known = [scale.upto(reach.low, at), scale.upto(reach.high, at), *earlier]
    keys = {key for held in (*known, at.rows) for key in held}
    return all(at.rows[key] in [held[key] for held in known] for key in keys)


def handed(scale: Scale, injection: Injection) -> str:
    """What shows that somebody was writing into the sink, though no row of it can be seen; empty if nothing does."""
    assert injection.at is not None
    snapshot = injection.at.snapshot
    if snapshot.writing.get(str(scale.position)):
        return "an open transaction had written into the sink"
    counted, before = snapshot.rows_counted, snapshot.rows_before
    rows = counted - before if counted is not None and before is not None else 0
    ours = snapshot.counted in (None, scale.position)
    return f"{rows} rows had been handed to the sink" if rows > 0 and ours else ""


def in_flight(scale: Scale, injection: Injection, reach: Reach, now: SinkState) -> Reach:
    """The query's progress, its slice in flight as the sink shows it."""
    if not reach.own:
        # Nobody does again what is done, if the driver lives.
        done = reach.by_time and lived(injection, reach)
        return replace(reach, low=finished(scale, reach, now)) if done else reach
    writing = bool(handed(scale, injection))
    if reach.first or _beyond(scale, reach, now):
        # It writes before it saves: it was done with the slice that the saved offsets call done.
        reach = replace(reach, last=(), first=True)
    return _early(scale, reach, now, writing=writing) or (reach if writing else bounded(scale, reach, now))


def lived(injection: Injection, reach: Reach) -> bool:
    """Did whoever had the batch in flight go on with it? Not if the driver died, of the hit or, later, by itself: then
    the next attempt may have begun with it."""
    return injection.spared and not reach.restarted


def finished(scale: Scale, reach: Reach, now: SinkState) -> Offsets:
    """Up to where the batches in flight are whole in the sink, or done by the checkpoint's word, and the sink bears
    that out. A restart does a batch of DStreams again that is done, so it counts as in flight with the next one; but
    the sink has it."""
    low = _said(scale, reach, now)
    base = scale.upto(low, now)
    steps = [each for each in scale.steps(now) if between(low, each[0]) and not between(reach.high, each[0])]
    for place, (end, then) in enumerate(steps):
        keys = changed(base, then)
        later = [held for _, held in steps[place:]]
        if not all(any(has(now.rows[key], held[key]) for held in later) for key in keys):
            break
        low = end
    return low


def _said(scale: Scale, reach: Reach, now: SinkState) -> Offsets:
    """Up to where the checkpoint says that the batches are done: of a total the sink does not tell, once somebody has
    begun to write the next one."""
    end = highest([reach.low, reach.done])
    base, full = scale.upto(reach.low, now), scale.upto(end, now)
    traces = Traces(scale, now, base, full)
    return end if all(map(traces.of, changed(base, full))) else reach.low


def has(now: Counter[Any], full: Counter[Any]) -> bool:
    """Are all of the rows there; where there are to be none, is none there?"""
    return now >= full if full else not now


def _early(scale: Scale, reach: Reach, now: SinkState, *, writing: bool) -> Reach | None:
    """Where it stood if it saves its offsets before the sink has the slice: the slice that it calls done is still in
    flight. Nothing of that is there, or a part while somebody writes; if nobody is seen to, what is missing has to be
    where a writer stopped. One row alone may be missing for any reason, and all of them where the sink shows its rows
    late. None if it does not."""
    if not reach.last or (scale.late and not writing):
        return None
    low = _back(reach.low, reach.last)
    before, saved = scale.upto(low, now), scale.upto(reach.low, now)
    keys = changed(before, saved)
    absent = {key for key in keys if now.rows[key] == before[key]}
    if not absent:
        return None
    if not writing and len(absent) < len(keys):
        left = _ends(scale, reach.last, absent)
        if len(absent) < 2 or scale.keys(left) != absent:
            return None
        low = _back(reach.low, left)
    return replace(reach, low=low, high=reach.low, last=(), early=True)


def _beyond(scale: Scale, reach: Reach, now: SinkState) -> bool:
    """Does the sink show something of what comes after the saved offsets?"""
    before, saved, full = (scale.upto(end, now) for end in (_back(reach.low, reach.last), reach.low, reach.high))
    keys = [key for key in changed(saved, full) if now.rows[key] not in (saved[key], before[key])]
    traces = Traces(scale, now, saved, full)
    return any(traces.of(key) and (not scale.case.aggregate or now.rows[key] == full[key]) for key in keys)


def _back(ends: Offsets, spans: Spans) -> dict[int, int]:
    """Those offsets, without these stretches at their end."""
    begin = {span.partition: span.start for span in spans}
    return {partition: begin.get(partition, end) for partition, end in ends.items()}


def _ends(scale: Scale, spans: Spans, keys: set[Key]) -> Spans:
    """The ends of these stretches that have no other keys."""
    if scale.case.aggregate:
        return ()
    return tuple(tail(span, lambda part: scale.keys((part,)) <= keys) for span in spans)


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
