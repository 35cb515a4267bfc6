"""Reads a MariaDB table or query whole and exactly, and takes its fingerprint while it may still change.

One read-only snapshot. The server writes every value as text: UTC, decimals in full, floats as the shortest text of the
double. So nothing is rounded on the way. A type that has no exact and comparable text is refused by name. Trailing
blanks of `char(n)` are padding and not data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from math import ceil
from typing import Any

import pymysql
from pymysql.constants import ER
from pymysql.cursors import SSCursor

from harness.checkers.cells import Row, canonical_rows
from harness.components.mariadb.database import quoted, words
from harness.components.mariadb.run_database import Database
from harness.components.mariadb.sink import column_types
from harness.errors import StackError, UsageError
from harness.fields import values as v
from harness.sinks.base import Missing, Reading, Unmade
from harness.sinks.table import SinkColumn

FETCH_ROWS = 20_000
STATEMENT_S = 120
NAME = "onceproof sink"
TOOK_TOO_LONG = 1969
ABSENT = (ER.NO_SUCH_TABLE, ER.BAD_TABLE_ERROR, ER.BAD_DB_ERROR)
UNIQUE = """
select count(*) from (
    select index_name from information_schema.statistics
    where table_schema = database() and table_name = %s and non_unique = 0
    group by index_name having sum(column_name not in %s) = 0
) as indexes
"""


KIND_OF = """
select table_type from information_schema.tables
where table_schema = coalesce(nullif(%s, ''), database()) and table_name = %s
"""


@contextmanager
def reading(own: Database, target: str, *, key: Sequence[str] = (), wait_ms: int = 0) -> Iterator[Reading]:
    """Columns and canonical rows, in parts of at most `FETCH_ROWS`, of one snapshot; `key` names a row.

    Raises Missing if it is not there; UsageError if it is wrong, has a column that cannot be compared, or, with
    `wait_ms`, where a lock keeps readers out for longer than that; StackError if the server does not answer."""
    with snapshot(own, f"read the sink {short(target)}", wait_ms=wait_ms) as connection:
        columns = _columns(connection, target)
        cells = ", ".join(map(column_types.cell, columns))
        with connection.cursor(SSCursor) as cursor:
            cursor.execute(f"select {cells} from {source_of(target)} as sink")
            parts = _parts(cursor, [column.family for column in columns], target)
            yield Reading(columns, parts, lambda: _unique(own, target, key))


def _parts(cursor: Any, families: list[str], target: str) -> Iterator[list[Row]]:
    while part := cursor.fetchmany(FETCH_ROWS):
        try:
            yield canonical_rows(part, families)
        except ValueError as failure:
            # A time of more than a day, say.
            raise UsageError(f"the sink {short(target)} holds what cannot be compared: {failure}") from failure


def columns(own: Database, target: str) -> tuple[SinkColumn, ...]:
    """Return the columns of a table or query, without its rows. Raises Missing if it is not there, and as `reading`
    does."""
    with snapshot(own, f"read the sink {short(target)}") as connection:
        return _columns(connection, target)


def mark(own: Database, target: str) -> str:
    """Return a fingerprint that changes when the rows do: their count and the sum of their hashes, made in the server.

    A table that is not there yet has a fingerprint too. Raises as `reading` does otherwise."""
    try:
        with snapshot(own, f"read the sink {short(target)}") as connection:
            cells = [f"coalesce(hex({column_types.cell(each)}), '-')" for each in _columns(connection, target)]
            digest = f"cast(conv(left(md5(concat_ws(' ', {', '.join(cells)})), 15), 16, 10) as unsigned)"
            with connection.cursor() as cursor:
                cursor.execute(f"select count(*), coalesce(sum({digest}), 0) from {source_of(target)} as sink")
                count, total = cursor.fetchone()
    except Missing:
        return "no such table"
    return f"{count} rows, {total}"


@contextmanager
def snapshot(own: Database, request: str, *, wait_ms: int = 0) -> Iterator[Any]:
    """A read-only transaction with one snapshot. Failures become words, without the password. `wait_ms` is how long
    it waits for a lock, in whole seconds of the server, and a tenth of what a statement may take; 0 stands for
    `STATEMENT_S` in all."""
    limit_s = wait_ms / 100 or STATEMENT_S
    locked_s = ceil(wait_ms / 1000) or STATEMENT_S
    try:
        with closing(own.connect(name=NAME)) as connection, connection.cursor() as cursor:
            cursor.execute(f"set max_statement_time = {limit_s}, lock_wait_timeout = {locked_s}")
            cursor.execute("set transaction isolation level repeatable read")
            cursor.execute("start transaction with consistent snapshot, read only")
            yield connection
    except pymysql.Error as failure:
        raise _error(failure, request, limit_s, locked_s) from failure


def _error(failure: pymysql.Error, request: str, limit_s: float, locked_s: float) -> UsageError | StackError:
    number = failure.args[0] if failure.args else 0
    if number == TOOK_TOO_LONG:
        return UsageError(f"asked MariaDB to {request}; it took longer than {limit_s:g} s")
    if number == ER.LOCK_WAIT_TIMEOUT:
        return UsageError(f"asked MariaDB to {request}; a statement locked every reader out for {locked_s:g} s")
    if number in ABSENT:
        return Missing(f"asked MariaDB to {request}; it said: {words(failure)}. Make it in `setup`, or mend `sink`")
    # Of a client that cannot reach the server or has lost it.
    if isinstance(failure, pymysql.InterfaceError) or (isinstance(number, int) and 2000 <= number < 3000):
        return StackError(f"asked MariaDB to {request}; saw {words(failure)}. See logs/mariadb.log")
    text = f"asked MariaDB to {request}; it said: {words(failure)}. Mend `sink`"
    return Unmade(text) if number == ER.SP_DOES_NOT_EXIST else UsageError(text)


def source_of(target: str) -> str:
    """Return what stands behind FROM: the query in brackets, or the table's name."""
    # The line break ends a comment that would otherwise eat the bracket.
    return f"({target.rstrip().rstrip(';')}\n)" if v.is_query(target) else ".".join(map(quoted, target.split(".")))


def may_fold(own: Database, target: str) -> bool:
    """Return whether it is a query, or the name of a view, which is one. Raises StackError."""
    if v.is_query(target):
        return True
    schema, _, name = target.rpartition(".")
    with snapshot(own, f"say what {target} is") as connection, connection.cursor() as cursor:
        cursor.execute(KIND_OF, (schema, name))
        found = cursor.fetchone()
    return found is not None and found[0] != "BASE TABLE"


def _columns(connection: Any, target: str) -> tuple[SinkColumn, ...]:
    with connection.cursor() as cursor:
        cursor.execute(f"select * from {source_of(target)} as sink limit 0")
        described = [(field.name, column_types.column(field)) for field in cursor._result.fields]
    for name, found in described:
        if found is None:
            request = f"the sink {short(target)} has a column {name} of a type that cannot be compared exactly"
            raise UsageError(f"{request}. Read the sink by a query that casts it, and cast it in `expected` alike")
    return tuple(found for _, found in described if found is not None)


def _unique(own: Database, target: str, key: Sequence[str]) -> bool:
    """Return whether a unique index of the table covers only columns of the key."""
    if v.is_query(target) or "." in target or not key:
        return False
    # While the rows are read their connection answers nothing else.
    with closing(own.connect(name=NAME)) as connection, connection.cursor() as cursor:
        cursor.execute(UNIQUE, (target, tuple(key)))
        return bool(cursor.fetchone()[0])


def short(target: str) -> str:
    """In one line, and not too long."""
    text = " ".join(target.split())
    return text if len(text) <= 80 else f"{text[:77]}..."
