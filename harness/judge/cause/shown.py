"""What the sink shows of each hit: what it held when a fault hit, afterwards and in the end, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Cut, Spans
from harness.judge.stakes.scale import Scale
from harness.judge.stakes.sink_state import RowsByKey, SinkState, held, same, whole
from harness.judge.stakes.weighed import Known


class Shown:
    """The hits of one run, as one sink saw them."""

    def __init__(self, scale: Scale, hits: Sequence[Known]) -> None:
        self.scale, self.hits = scale, hits
        self._tables: dict[Cut, RowsByKey] = {}
        self._exact: dict[Cut, RowsByKey] = {}
        self._twos: dict[Spans, bool] = {}
        # What sources that stood apart had in flight, each for itself: a row of it that was there and came again did so
        # after the fault.
        self.partial = [self._keys(hit.reach.partial) for hit in hits]
        again = [self._keys(hit.again) | (self.partial[n] if hit.again else set()) for n, hit in enumerate(hits)]
        self.again = [keys - self._keys(hit.reach.anew) for keys, hit in zip(again, hits, strict=True)]
        self.end = SinkState(scale.case, held(scale.case, scale.case.found))
        self.right = held(scale.case, scale.case.expected)
        self.all = whole(scale.case, scale.case.found)
        keys = {*self.right, *self.end.rows}
        self.wrong = {key for key in keys if not self._fits(Cut(), key)}

    def _keys(self, spans: Spans) -> set[Key]:
        return set(self._table(Cut(only=spans))) if spans else set()

    def _table(self, cut: Cut) -> RowsByKey:
        if cut not in self._tables:
            self._tables[cut] = held(self.scale.case, self.scale.rows(cut))
        return self._tables[cut]

    def _saw(self, hit: Known, key: Key, row: Row) -> int:
        """How many copies of a row were there before the next attempt worked."""
        return max(copies(hit.last, key, row), copies(hit.at, key, row))

    def _before(self, hit: Known, key: Key) -> int:
        """How many rows of the key were there before the next attempt worked."""
        return max(hit.last.rows[key].total(), hit.at.rows[key].total())

    def _after(self, place: int) -> SinkState:
        """The sink when the next fault hit, or in the end."""
        return next((hit.at for hit in self._later(place)), self.end)

    def _later(self, place: int) -> list[Known]:
        """The hits after one, but for those of attempts that had not done anything: the sink was as it had been."""
        then = self.hits[place].last.rows
        return [hit for hit in self.hits[place + 1 :] if hit.injection.worked or hit.at.rows != then]

    def _fits(self, cut: Cut, key: Key) -> bool:
        return self._same(key, self._whole(cut)[key], self.all[key])

    def _whole(self, cut: Cut) -> RowsByKey:
        """The rows with all of their cells."""
        if cut not in self._exact:
            self._exact[cut] = whole(self.scale.case, self.scale.rows(cut))
        return self._exact[cut]

    def _same(self, key: Key, one: Counter[Any], other: Counter[Any]) -> bool:
        return same(self.scale.case, key, one, other)

    def _as(self, cut: Cut, key: Key) -> Counter[Any]:
        return self._table(cut)[key]

    def _at(self, sink_state: SinkState, cut: Cut, key: Key) -> Counter[Any]:
        return sink_state.of(self._as(cut, key).elements())[key]


def copies(sink_state: SinkState, key: Key, row: Row) -> int:
    marks = sink_state.of([row])
    return sum(sink_state.rows[key][mark] for mark in marks[key])
