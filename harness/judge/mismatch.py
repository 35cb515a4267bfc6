"""Whether the totals at a reading were those of the batches committed by then.

If not, the sink is late, or two errors cancel: a reading then proves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Cut, between
from harness.judge.exposure import Exposed
from harness.judge.readings.scale import Scale
from harness.judge.readings.sink_state import RowsByKey, SinkState, held


def mismatched(scale: Scale, step: Exposed) -> int:
    """Return how many totals that are right in the end were another one at the reading. A right reading has the total
    of the committed batches, or that with the batch in flight. Where the batch may have been written in part, a total
    between the two is right too. A key that is missing is late, and is not counted; nor is one that a living driver may
    have changed meanwhile. Of a sink that is `late`, and when an attempt has just ended, only totals beyond all earlier
    ones are counted."""
    if step.progress is None or step.before_restart is None or not scale.case.aggregate or step.injection.running:
        return 0
    high = step.progress.high
    low = high if step.progress.after else step.progress.low
    sink_state, taken = step.before_restart, between(low, high)
    base, full = (scale.upto(end, sink_state) for end in (low, high))
    partly = sink_state.of(scale.rows(Cut(only=taken))) if taken else {}
    right, end = held(scale.case, scale.case.expected), held(scale.case, scale.case.found)
    partial = scale.keys(step.progress.partial)
    late = scale.late or not step.injection.outcome.injected
    steps, wrong = [held for _, held in scale.steps(sink_state)] if late else [], 0
    for key, rows in sink_state.rows.items():
        if key in partial:
            continue
        ends = base[key], full[key]
        open_ = rows in ends or (key in partly and between_ends(scale, sink_state, rows, ends))
        open_ = open_ or _earlier(scale, sink_state, rows, list(_totals(steps, key, full[key])))
        wrong += not open_ and right[key] == end[key]
    return wrong


def between_ends(scale: Scale, at: SinkState, rows: Counter[Any], ends: Sequence[Counter[Any]]) -> bool:
    """Return whether these may be rows of a batch that was written in part: one row of numbers then lies between its
    two ends."""
    known = [list(each.elements()) for each in (rows, *ends)]
    if at.places is not None or any(len(each) != 1 for each in known):
        return True
    there, low, high = (each[0] for each in known)
    places = [place for place, family in enumerate(scale.case.families) if family == "number"]
    return all(_within(there[place], low[place], high[place]) for place in places)


def _earlier(scale: Scale, at: SinkState, rows: Counter[Any], totals: Sequence[Counter[Any]]) -> bool:
    """Return whether a late sink may have shown this total: one after any batch, or between two of them."""
    return rows in totals or any(ends[0] and between_ends(scale, at, rows, ends) for ends in pairwise(totals))


def _totals(steps: Sequence[RowsByKey], key: Key, last: Counter[Any]) -> Iterator[Counter[Any]]:
    """Yield one total after each batch, up to where it is the last one."""
    for step in steps:
        yield step[key]
        if step[key] == last:
            return


def _within(cell: str | None, one: str | None, other: str | None) -> bool:
    numbers = [Decimal(each) for each in (cell, one, other) if each is not None]
    if len(numbers) < 3 or not all(number.is_finite() for number in numbers):
        return True
    return min(numbers[1:]) <= numbers[0] <= max(numbers[1:])
