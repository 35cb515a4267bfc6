"""A sink at one point in time, row by row under its key: as it was read whole, or as keys and fingerprints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.checkers.cells import Row
from harness.checkers.compare import Case, Key, key_of
from harness.checkers.wrong_total import alike
from harness.sinks.table import WHOLE, SinkTable, fingerprint


class RowsByKey(dict[Key, Counter[Any]]):
    """By key, the rows that are there, or their fingerprints; as in a Counter, a key that is not there holds none."""

    def __missing__(self, key: Key) -> Counter[Any]:
        return Counter()


@dataclass(frozen=True)
class SinkState:
    """What one sink held. `places` are those of its columns in a row of `expected`, None where rows are whole."""

    case: Case
    rows: RowsByKey
    places: tuple[int, ...] | None = None

    def of(self, rows: Iterable[Row]) -> RowsByKey:
        """Return rows of `expected` in the same form, so that they can be compared with what was held."""
        if self.places is None:
            return held(self.case, rows)
        out = RowsByKey()
        keys = row_key_places(self.case)
        for row in rows:
            mark = fingerprint(tuple([row[place] for place in self.places]))
            out.setdefault(key_of(row, keys), Counter())[mark] += 1
        return out


def row_key_places(case: Case) -> tuple[int, ...]:
    """Return the columns that name a row while it changes; none for one total that is all key."""
    alone = case.aggregate and not case.payload_places() and len(case.expected) == 1
    return () if alone else case.key_places()


def held(case: Case, rows: Iterable[Row]) -> RowsByKey:
    """Return rows of `expected` by key."""
    sums = set(_sums(case))
    exact = (tuple([None if at in sums else cell for at, cell in enumerate(row)]) for row in rows)
    return whole(case, exact if sums else rows)


def whole(case: Case, rows: Iterable[Row]) -> RowsByKey:
    """Return the same with all cells, floating point numbers too."""
    out = RowsByKey()
    places = row_key_places(case)
    for row in rows:
        out.setdefault(key_of(row, places), Counter())[row] += 1
    return out


def same(case: Case, key: Key, one: Counter[Any], other: Counter[Any]) -> bool:
    """Return whether they are the same rows of a key, all their cells, up to how sums of floating point numbers
    round."""
    return one == other or (case.aggregate and alike(case, key, one.elements(), other.elements()))


def blind(case: Case) -> bool:
    """Return whether each value of its totals is a sum of floating point numbers. Then no reading tells one total from
    another."""
    return bool(_sums(case)) and set(case.payload_places()) <= set(_sums(case))


def _sums(case: Case) -> list[int]:
    """Return the columns of a total that hang on the order of what went into it: they differ where nothing else
    does."""
    return [place for place, rounds in enumerate(case.rounds) if rounds and place not in row_key_places(case)]


def sink_state(case: Case, table: SinkTable | None, *, names: Sequence[str]) -> SinkState | None:
    """Return the sink of `case` as `table` has it; None if it could not be read or compared; one that was not made yet
    held nothing. `names` are the sink's columns in its own order."""
    if table is not None and table.absent:
        return SinkState(case, RowsByKey())
    if table is None or table.unreadable:
        return None
    here = [column.name for column in table.columns]
    if table.form != WHOLE:
        return _marks(case, table, here, names)
    rows = _as_expected(case, here, table.rows)
    return None if rows is None else SinkState(case, held(case, rows))


def dropped(case: Case, table: SinkTable | None) -> Counter[Row] | None:
    """Return the rows that the sink's reader left out as repetitions at a reading, as rows of `expected`; None if they
    were not kept."""
    if table is None or table.unreadable or table.dropped is None:
        return None
    rows = _as_expected(case, [column.name for column in table.columns], table.dropped)
    return None if rows is None else Counter(rows)


def _as_expected(case: Case, here: Sequence[str], rows: Iterable[Row]) -> list[Row] | None:
    """Return rows of the columns `here` as rows of `expected`; None if a column of that is missing."""
    if not set(case.columns) <= set(here):
        return None
    order = [here.index(name) for name in case.columns]
    return [tuple([row[place] for place in order]) for row in rows]


def _marks(case: Case, table: SinkTable, here: Sequence[str], names: Sequence[str]) -> SinkState | None:
    """Return rows of (key cells, fingerprint); the fingerprint is of the row in the sink's own order of columns.
    Nothing can be said of rows that are all key, nor of totals of floating point numbers. The same holds for a sink
    with columns that `expected` has not."""
    known = [case.columns[place] for place in row_key_places(case)]
    if _sums(case):
        return None
    if sorted(names) != sorted(case.columns) or sorted(here[:-1]) != sorted(known):
        return None
    rows = RowsByKey()
    order = [here.index(name) for name in known]
    for row in table.rows:
        rows.setdefault(key_of(row, order), Counter())[row[-1]] += 1
    return SinkState(case, rows, tuple(case.columns.index(name) for name in names))
