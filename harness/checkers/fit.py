"""Can effect and sink be compared at all? Asked before the first record is sent, and again of what was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from harness.scenario import Sink


class Described(Protocol):
    """A column's name, its engine's type, and the family of its cells."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def family(self) -> str: ...


class Column(NamedTuple):
    """A column of an effect."""

    name: str
    type: str
    family: str


def misfit(sink: Sink, effect: Sequence[Described], table: Sequence[Described], *, name: str = "") -> list[str]:
    """Why the columns of effect and sink cannot be compared; empty if they can. `name` is what the scenario calls the
    sink, where its own name is not enough."""
    called = name or sink.name
    wanted = {column.name: column for column in effect}
    there = {column.name: column for column in table}
    extra = {sink.order.by} if sink.order is not None else set()
    out = []
    if len(wanted) < len(effect) or len(there) < len(table):
        out.append(f"{called}: two columns have one name in the effect or in the sink")
    if set(wanted) - set(there) or set(there) - set(wanted) - extra:
        out.append(f"{called}: the effect has columns {_list(wanted)}; the sink has {_list(there)}")
    if set(sink.key) - set(wanted):
        out.append(f"{called}: the key {_list(sink.key)} is not among the effect's columns {_list(wanted)}")
    for name in wanted.keys() & there.keys():
        if wanted[name].family != there[name].family:
            out.append(
                f"{called}: column {name} is {wanted[name].type} in the effect and {there[name].type} in the sink; "
                "cast one of them, so that the values can be compared exactly"
            )
    return sorted(out)


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
