"""A sink at one moment, row by row under its key: as it was read whole, or as keys and fingerprints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.checkers.cells import Row
from harness.checkers.compare import Case, Key, key_of
from harness.sinks import SinkTable
from harness.sinks.table import WHOLE, fingerprint

Held = dict[Key, Counter[object]]
"""By key, the rows that are there, or their fingerprints."""


@dataclass(frozen=True)
class Look:
    """What one sink held. `places` are those of the sink's columns in an effect's row, None where rows are whole."""

    case: Case
    rows: Held
    places: tuple[int, ...] | None = None

    def of(self, rows: Iterable[Row]) -> Held:
        """Rows of the effect in the same form, so that they can be compared with what was held."""
        if self.places is None:
            return held(self.case, rows)
        out: Held = {}
        keys = self.case.key_places()
        for row in rows:
            mark = fingerprint(tuple([row[place] for place in self.places]))
            out.setdefault(key_of(row, keys), Counter())[mark] += 1
        return out


def held(case: Case, rows: Iterable[Row]) -> Held:
    """Rows of the effect by key."""
    out: Held = {}
    places = case.key_places()
    for row in rows:
        out.setdefault(key_of(row, places), Counter())[row] += 1
    return out


def look(case: Case, table: SinkTable | None, whole: SinkTable) -> Look | None:
    """The sink of `case` as `table` has it; None if it was not there or cannot be compared. `whole` is the same sink
    as it was read in the end: its columns, in their order, are those that fingerprints are of."""
    if table is None or table.unreadable:
        return None
    names = [column.name for column in table.columns]
    if table.form != WHOLE:
        return _marks(case, table, names, [column.name for column in whole.columns])
    if not set(case.columns) <= set(names):
        return None
    order = [names.index(name) for name in case.columns]
    return Look(case, held(case, (tuple([row[place] for place in order]) for row in table.rows)))


def _marks(case: Case, table: SinkTable, names: Sequence[str], marked: Sequence[str]) -> Look | None:
    """Rows of (key cells, fingerprint); the fingerprint is of the row in the sink's own order of columns. Nothing can
    be said of a sink without a key, nor of one with columns that the effect has not."""
    if sorted(marked) != sorted(case.columns) or not case.key or sorted(names[:-1]) != sorted(case.key):
        return None
    order = [names.index(case.columns[place]) for place in case.key_places()]
    rows: Held = {}
    for row in table.rows:
        rows.setdefault(key_of(row, order), Counter())[row[-1]] += 1
    return Look(case, rows, tuple(case.columns.index(name) for name in marked))
