"""What DuckDB's own functions do, by name: fold rows into one, give several rows, answer otherwise each time."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

from harness.ledger.syntax import CLOCK_WORDS
from harness.run_folder.database import connection

OUTSIDE = frozenset({"current_localtime", "current_localtimestamp", "current_setting"})
"""Clocks, and the machine's own settings: some versions of DuckDB call them consistent."""
STEADY = frozenset({"error", "current_database", "current_schema"})
"""What it does not call consistent, and is where `expected` runs: there is one database with one schema."""
SEVERAL = frozenset({"unnest", "unlist"})
TABLES = frozenset({"generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest"})
"""The functions after `from` whose rows are made of their arguments. The catalogue has no stability for these, and of
the others some run SQL that is in a text (`query`), or show the engine (`duckdb_settings`)."""
_OF_TABLES = ("pragma", "table", "table_macro")
_ALL = """
select function_name, function_type, macro_definition,
       stability = 'VOLATILE' or stability = 'CONSISTENT_WITHIN_QUERY' and varargs is null and len(parameters) = 0
from duckdb_functions()
"""
# What is consistent within a query is made of its arguments and of the session. Here a session has no state that
# changes: no variable, one schema, and settings that are locked, the time zone among them. What takes no
# argument is made of the clock.


@dataclass(frozen=True, kw_only=True)
class Functions:
    """Names in small letters: of aggregates; of what, called for one row, gives several; of the functions after `from`
    whose rows their arguments do not make; of these and of all else that answers otherwise each time, be it from one
    query to the next."""

    aggregates: frozenset[str]
    tables: frozenset[str]
    several: frozenset[str]
    unsteady: frozenset[str]


@cache
def known() -> Functions:
    """Return DuckDB's own functions. Listing them takes as long as all else that a ledger needs."""
    with connection() as db:
        listed = db.execute(_ALL).fetchall()
    macros: dict[str, set[str]] = {}
    for name, kind, definition, _ in listed:
        if kind == "macro":
            macros.setdefault(name, set()).update(re.findall(r"\w+", definition.lower()))
    unsteady = {name for name, *_, otherwise in listed if otherwise} - STEADY
    tables = {name for name, kind, *_ in listed if kind in _OF_TABLES} - TABLES - _plain(listed)
    return Functions(
        tables=frozenset(tables),
        aggregates=frozenset(name for name, kind, *_ in listed if kind == "aggregate"),
        several=with_macros(SEVERAL, macros),
        unsteady=with_macros(unsteady | tables | OUTSIDE | {*CLOCK_WORDS}, macros),
    )


def _plain(listed: Collection[tuple[str, str, str | None, bool]]) -> set[str]:
    """Return the functions that an expression can call too: DuckDB lists their stability."""
    return {name for name, kind, *_ in listed if kind not in _OF_TABLES}


def with_macros(names: Collection[str], macros: Mapping[str, Collection[str]]) -> frozenset[str]:
    """These, and the macros that call one of them, be it by way of another."""
    out = frozenset(names)
    more = {name for name, called in macros.items() if not out.isdisjoint(called)} - STEADY
    return out if more <= out else with_macros(out | more, macros)
