"""What DuckDB's own functions do, by name: fold rows into one, give several rows, answer otherwise each time."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

from harness.effect.syntax import CLOCK_WORDS
from harness.run_folder.database import connection

UNTOLD = frozenset({"current_localtime", "current_localtimestamp"})
"""Clocks that DuckDB calls consistent."""
STEADY = frozenset({"error", "current_database", "current_schema", "current_schemas", "getvariable", "in_search_path"})
"""What it does not call consistent, and is where an effect runs: there is one schema, and no variable."""
SEVERAL = frozenset({"unnest", "unlist"})
_ALL = "select function_name, function_type, stability, macro_definition from duckdb_functions()"


@dataclass(frozen=True, kw_only=True)
class Functions:
    """Names in small letters: of aggregates; of what, called for one row, gives several; of what answers otherwise each
    time, be it from one query to the next."""

    aggregates: frozenset[str]
    several: frozenset[str]
    unsteady: frozenset[str]


@cache
def known() -> Functions:
    """DuckDB's own. To ask for them takes as long as all else that a ledger needs."""
    with connection() as db:
        told = db.execute(_ALL).fetchall()
    macros: dict[str, set[str]] = {}
    for name, kind, _, definition in told:
        if kind == "macro":
            macros.setdefault(name, set()).update(re.findall(r"\w+", definition.lower()))
    unsteady = {name for name, _, stability, _ in told if stability not in (None, "CONSISTENT")} - STEADY
    return Functions(
        aggregates=frozenset(name for name, kind, _, _ in told if kind == "aggregate"),
        several=_with_macros(SEVERAL, macros),
        unsteady=_with_macros(unsteady | UNTOLD | {*CLOCK_WORDS}, macros),
    )


def _with_macros(names: Collection[str], macros: Mapping[str, Collection[str]]) -> frozenset[str]:
    """These, and the macros that call one of them, be it by way of another."""
    out = frozenset(names)
    more = {name for name, called in macros.items() if not out.isdisjoint(called)} - STEADY
    return out if more <= out else _with_macros(out | more, macros)
