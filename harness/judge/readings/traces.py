"""What a sink shows of records that were written into it: not every row that differs from what was there before them.

The program may have written a row in advance, such as a counter at zero. A row may be out of date, since a late sink
shows its rows in other portions than the batches. Only a row between what it was and what the records make of it is a
trace of these records.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.wrong_total import decimal
from harness.judge.readings.scale import Scale
from harness.judge.readings.sink_state import RowsByKey, SinkState

ZERO = Decimal(0)


@dataclass(frozen=True)
class Traces:
    """What may have happened to the rows of a sink between two states of its query: `base` is what it holds after
    the one, `full` after the other."""

    scale: Scale
    sink_state: SinkState
    base: RowsByKey
    full: RowsByKey

    def of(self, key: Key) -> bool:
        """Return whether there is something under the key that the records in between have written."""
        now, base, full = self.sink_state.rows[key], self.base[key], self.full[key]
        if now <= base:
            # Nothing came. What the records take away may be gone.
            return bool((base - now) & (base - full))
        new = now - base
        if new & (full - base):
            return True
        # The reading holds fingerprints, or a record has its rows to itself: they are there, or they are not.
        if self.sink_state.places is not None or not self.scale.case.aggregate:
            return False
        if base.total() > 1 or full.total() > 1:
            return False
        return any(self._grown(key, row, next(iter(base), None)) for row in new)

    def _grown(self, key: Key, row: Row, start: Row | None) -> bool:
        """Return whether the records may have made this total of the other. One that only grows has grown, whatever
        made it grow. Where there is none of that kind, a total of nothing but zeros was made in advance."""
        places = [place for place in self.scale.growing if self.scale.grows(key, place)]
        steps = [(decimal(row[place]) or ZERO) - (decimal(start[place] if start else None) or ZERO) for place in places]
        if places:
            return max(steps) > 0
        numbers = [place for place, family in enumerate(self.scale.case.families) if family == "number"]
        payload = [place for place in numbers if place in self.scale.case.payload_places()]
        return start is not None or not payload or any(decimal(row[place]) for place in payload)
