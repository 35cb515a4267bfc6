"""What steps are weighed with, one sink at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from harness.checkers.cells import Row
from harness.checkers.compare import Case, Key
from harness.checkers.offset_ranges import Cut, OffsetRanges, Offsets, between, highest
from harness.checkers.wrong_total import decimal, single
from harness.errors import UsageError
from harness.judge.readings.sink_state import RowsByKey, SinkState, held
from harness.ledger import Ledger, Table
from harness.scenario import Harm, Sink
from harness.sinks.table import SinkTable

BatchRanges = tuple[int | None, OffsetRanges]
"""What was read at once: the number of the batch, None if the pipeline manages its own offsets; its offset ranges."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What readings of one sink are compared with.

    `case` is the judged case; `table` the sink as it was read; `allows` the harm that the guarantee allows. `queries`
    are the offset ranges that each query read at once, in order. `late_s`: the scenario says that the sink shows its
    rows late, by up to that many seconds.
    """

    ledger: Ledger
    sink: Sink
    position: int
    case: Case
    table: SinkTable
    allows: Harm | None = None
    queries: Sequence[Sequence[BatchRanges]] = ()
    late_s: float | None = None
    _keys: dict[OffsetRanges, set[Key]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def late(self) -> bool:
        return self.late_s is not None

    @property
    def batch_ranges(self) -> list[BatchRanges]:
        """The offset ranges that all queries read at once."""
        return [each for query in self.queries for each in query]

    @property
    def sql(self) -> str:
        return self.sink.expected or ""

    @cached_property
    def growing(self) -> dict[int, bool]:
        """The places of the numbers that are counts or sums; true for a count."""
        known = self.ledger.growing(self.sql)
        return {place: counts for place, counts in known.items() if self.case.families[place] == "number"}

    @cached_property
    def least(self) -> Table:
        """`expected` with the least number that went into each sum in its place."""
        return self.ledger.extreme(self.sql, "min")

    @cached_property
    def _given(self) -> dict[Key, Row]:
        return single(self.least.rows, self.case.key_places())

    def grows(self, key: Key, place: int) -> bool:
        """Return whether no record gave less than nothing to that count or sum of the key."""
        given = decimal(self._given[key][place]) if key in self._given else None
        return self.growing[place] or (given is not None and given >= 0)

    def refused(self, failure: UsageError) -> str:
        """The whole ledger has a right `expected`; why there is none of a part of it."""
        first = str(failure).splitlines()[0]
        return f"`expected` of {self.case.sink} cannot be run with records left out or counted twice: {first}"

    def rows(self, cut: Cut) -> list[Row]:
        """`expected` over a cut of the ledger, its columns in the order of the case."""
        return self.ledger.table(self.sql, cut=cut).rows

    def upto(self, ends: Offsets, sink_state: SinkState) -> RowsByKey:
        """Return what the sink holds if all before these offsets took effect, in the form of a reading."""
        return sink_state.of(self.rows(Cut(only=between({}, ends))))

    def steps(self, sink_state: SinkState, *, before: Offsets | None = None) -> Iterator[tuple[Offsets, RowsByKey]]:
        """Yield, after each batch of each query, the next offsets and what the sink holds then; with `before`, only
        while something lies between the two."""
        for query in self.queries:
            end: Offsets = {}
            for _, ranges in query:
                end = highest([end, {each.partition: each.end for each in ranges}])
                if before is not None and not between(end, before):
                    break
                yield end, self.upto(end, sink_state)

    def keys(self, ranges: OffsetRanges) -> set[Key]:
        """Return the keys to which these records give a row. The ledger computes them once."""
        if ranges not in self._keys:
            self._keys[ranges] = set(held(self.case, self.rows(Cut(only=ranges)))) if ranges else set()
        return self._keys[ranges]


def changed(one: RowsByKey, other: RowsByKey) -> list[Key]:
    """Return the keys whose rows differ."""
    return [key for key in {**one, **other} if one[key] != other[key]]
