"""Whether `expected` and sink can be compared at all. Checked before the first record is sent, and again on what was
read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from harness.scenario import Sink

FLOATS = (("FLOAT", "DOUBLE"), ("real", "double precision"), ("float", "double"))
"""The floats of four and of eight bytes, as each engine calls them; that of `expected` first."""

FRACTIONS = {"TIMESTAMP_S": 0, "TIMESTAMP_MS": 3, "TIMESTAMP_NS": 9}
MICROSECONDS = 6
UNBOUND = ("numeric", "DECIMAL")
_MODIFIER = re.compile(r"\((\d+)(?:,\s*(-?\d+))?\)")


class Described(Protocol):
    """A column's name, its engine's type with modifiers, and the family of its cells."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def family(self) -> str: ...


class Tried(Protocol):
    """Whether a row that is there twice is missing in what a sink's query returns, None where that is not known, and
    why. `dropped` is what its reader left out; None where it keeps nothing of the kind."""

    @property
    def folds(self) -> bool | None: ...
    @property
    def folding(self) -> str: ...
    @property
    def dropped(self) -> object: ...


class Column(NamedTuple):
    """A column of `expected`."""

    name: str
    type: str
    family: str


def schema_mismatch(
    sink: Sink, expected: Sequence[Described], table: Sequence[Described], *, name: str = ""
) -> list[str]:
    """Return why the columns of `expected` and sink cannot be compared; empty if they can. `name` is what the scenario
    calls the sink, where its own name is not enough."""
    called = name or sink.name
    wanted = {column.name: column for column in expected}
    there = {column.name: column for column in table}
    extra = {sink.order.by} if sink.order is not None else set()
    out = []
    if len(wanted) < len(expected) or len(there) < len(table):
        out.append(f"{called}: two columns have one name in `expected` or in the sink")
    if set(wanted) - set(there) or set(there) - set(wanted) - extra:
        out.append(f"{called}: `expected` has columns {_list(wanted)}; the sink has {_list(there)}")
    if set(sink.key) - set(wanted):
        out.append(f"{called}: the key {_list(sink.key)} is not among the columns of `expected` {_list(wanted)}")
    for column in wanted.keys() & there.keys():
        cure = _unequal(wanted[column], there[column])
        if cure:
            types = f"{wanted[column].type} in `expected` and {there[column].type} in the sink"
            out.append(f"{called}: column {column} is {types}{cure}")
    return sorted(out)


def folded(sink: Sink, table: Tried, *, name: str = "") -> str:
    """Return why a repetition could not be seen in this sink, though the scenario does not say so; empty if it
    could."""
    called, cure = name or sink.name, "a query that keeps every row, or say `view: deduplicated` of this one"
    if sink.folds:
        return ""
    if table.folds:
        return f"{called} is a query that folds equal rows: {table.folding}. Read the sink by {cure}"
    if table.folds is None and table.folding:
        words = f"whether the query {called} folds equal rows could not be tried: {table.folding}"
        return f"{words}. Read the sink as a table, or by {cure}"
    return ""


def folding_note(sink: Sink, table: Tried, *, name: str = "") -> str:
    """Return what the sink's query leaves open, and the scenario says so; empty if nothing."""
    if sink.folds and table.folds is not False:
        how = "does not show in it" if table.dropped is None else "shows only in what its reader dropped"
        return f"{name or sink.name}: the sink's reader folds equal rows: a repetition {how}"
    return ""


def _unequal(expected: Described, sink: Described) -> str:
    """Return why two columns cannot be compared exactly, and the cure; empty if they can."""
    if expected.family != sink.family:
        zone = {"instant", "timestamp"} == {expected.family, sink.family}
        whose = "`expected`" if expected.family == "instant" else "the sink"
        zones = f", and only {whose} has a time zone" if zone else ""
        return f"{zones}; cast one of them, so that the values can be compared exactly"
    if expected.family == "float":
        wider = expected.type == FLOATS[0][1]
        its_own = next(names for names in FLOATS if sink.type in names)
        cures = f"make the sink's column {its_own[wider]}, or cast it in `expected` to {FLOATS[0][not wider]}"
        return f", which rounds the same value otherwise; {cures}" if its_own[wider] != sink.type else ""
    wanted, kept = _decimals(expected), _decimals(sink)
    if wanted is None or kept is None or wanted <= kept:
        return ""
    of = "a second" if expected.family != "number" else "a number"
    less = f", which keeps {kept} of {wanted} decimals of {of}"
    return f"{less}; make the sink's column finer, or {_coarser(expected, kept)}"


def _decimals(column: Described) -> int | None:
    """Return how many digits behind the point a column keeps; None where that is not limited, or means nothing. Of
    those before it nothing is asked: a server refuses a number that is too large for its column."""
    base, modifier = column.type.split("(")[0].strip(), _MODIFIER.search(column.type)
    if column.family == "number":
        if modifier is not None:
            return int(modifier[2] or 0)
        return None if base in UNBOUND else 0
    if column.family in ("timestamp", "instant", "time"):
        return int(modifier[1]) if modifier is not None else FRACTIONS.get(base, MICROSECONDS)
    return None


def _coarser(expected: Described, decimals: int) -> str:
    """Return what `expected`, or else the sink's query, can do to ask for no more decimals than the sink keeps."""
    if expected.family == "number":
        # As many digits before the point as it has now.
        modifier = _MODIFIER.search(expected.type)
        digits = int(modifier[1]) - int(modifier[2] or 0) if modifier is not None else 18
        return f"cast it in `expected` to DECIMAL({max(digits + max(decimals, 0), 1)},{max(decimals, 0)})"
    if expected.family == "timestamp":
        exact = {0: "TIMESTAMP_S", 3: "TIMESTAMP_MS", MICROSECONDS: "TIMESTAMP"}
        if decimals in exact:
            return f"cast it in `expected` to {exact[decimals]}"
    return f"round it in `expected`, and read the sink by a query that casts it to {expected.type}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
