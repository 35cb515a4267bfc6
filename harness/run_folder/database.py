"""The process's own DuckDB, closed to files, networks and extensions.

Opening one takes longer than judging a small run. Each use has its own connection, whose temporary tables no other
connection sees.
"""

from __future__ import annotations

import os
from functools import cache

import duckdb

CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}


def connection() -> duckdb.DuckDBPyConnection:
    """Return a new connection, for one thread at a time; close it."""
    found = _database(os.getpid()).cursor()
    try:
        found.execute("select 1").fetchall()
    except duckdb.FatalException:
        # An internal error of DuckDB's makes a database useless for good.
        _database.cache_clear()
        found = _database(os.getpid()).cursor()
    return found


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """Return that of `process`, which is this one: a fork cannot use its parent's."""
    database = duckdb.connect(":memory:", config=dict(CLOSED))
    database.execute("set global TimeZone = 'UTC'")
    database.execute("set lock_configuration = true")
    return database
