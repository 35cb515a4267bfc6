"""Reads a Postgres table or query whole and exactly, and takes its fingerprint while it may still change.

One read-only snapshot. Types have their modifiers (`column_types`), and a table says whether its key is unique. The
server writes every value as text (ISO dates, UTC, shortest exact floats), so nothing is rounded on the way; a type that
has no exact and comparable text is refused by name. Trailing blanks of `char(n)` are padding and not data. Table names
are looked up by the server, and quoted by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import ISOLATION_LEVEL_REPEATABLE_READ

from harness.checkers.cells import Row, canonical_rows
from harness.components.postgres.sink import column_types
from harness.errors import StackError, UsageError
from harness.fields import values as v
from harness.sinks.base import Missing, Reading, Unmade
from harness.sinks.table import SinkColumn

UNMADE = (psycopg2.errors.UndefinedFunction, psycopg2.errors.UndefinedObject)
FETCH_ROWS = 20_000
STATEMENT_MS = 120_000
CONNECT_S = 10

FAMILIES = {
    "int2": "number",
    "int4": "number",
    "int8": "number",
    "numeric": "number",
    "float4": "float",
    "float8": "float",
    "text": "text",
    "varchar": "text",
    "bpchar": "text",
    "name": "text",
    "char": "text",
    "bool": "bool",
    "timestamp": "timestamp",
    "timestamptz": "instant",
    "date": "date",
    "time": "time",
    "bytea": "bytes",
    "json": "json",
    "jsonb": "json",
    "uuid": "uuid",
}
"""Family by Postgres type; enums, and types of the string category such as citext, are text too."""

SETTINGS = "set datestyle = 'ISO, YMD'; set timezone = 'UTC'; set extra_float_digits = 1; set bytea_output = 'hex'"
_TABLE = """
select quote_ident(n.nspname) || '.' || quote_ident(c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(%s)
"""
_TYPES = """
select oid, typname, format_type(oid, null), typtype = 'e' or typcategory = 'S' from pg_type where oid = any(%s)
"""


_UNIQUE = """
select bool_or(not exists (
    select from unnest(i.indkey::int2[]) with ordinality as at(attnum, place)
    left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = at.attnum and at.attnum > 0
    where at.place <= i.indnkeyatts and not coalesce(a.attname = any(%s), false)))
from pg_index i where i.indrelid = to_regclass(%s) and i.indisunique and i.indisvalid and i.indpred is null
"""


@contextmanager
def reading(dsn: str, target: str, *, key: Sequence[str] = (), wait_ms: int = 0) -> Iterator[Reading]:
    """Columns and canonical rows, in parts of at most `FETCH_ROWS`, of one snapshot; `key` names a row.

    Raises Missing if it is not there; UsageError if it is wrong, has a column that cannot be compared, or, with
    `wait_ms`, where a lock keeps readers out for longer than that; StackError if the server does not answer."""
    with snapshot(dsn, f"read the sink {short(target)}", wait_ms=wait_ms) as connection:
        source = source_of(connection, target)
        columns = _columns(connection, source, target, dsn)
        cells = sql.SQL(", ").join(_cell(place, column) for place, column in enumerate(columns))
        names = sql.SQL(", ").join(sql.Identifier(f"c{place}") for place in range(len(columns)))
        with connection.cursor(name="onceproof") as cursor:
            cursor.itersize = FETCH_ROWS
            cursor.execute(sql.SQL("select {} from {} as sink({})").format(cells, source, names))
            parts = _parts(cursor, [column.family for column in columns])
            yield Reading(columns, parts, lambda: _unique(connection, target, key))


def _parts(cursor: Any, families: list[str]) -> Iterator[list[Row]]:
    while part := cursor.fetchmany(FETCH_ROWS):
        yield canonical_rows(part, families)


def columns(dsn: str, target: str) -> tuple[SinkColumn, ...]:
    """Return the columns of a table or query, without its rows. Raises Missing if it is not there, and as `reading`
    does."""
    with snapshot(dsn, f"read the sink {short(target)}") as connection:
        return _columns(connection, source_of(connection, target), target, dsn)


def mark(dsn: str, target: str) -> str:
    """Return a fingerprint that changes when the rows do: their count and the sum of their hashes, made in the server.

    A table that is not there yet has a fingerprint too. Raises as `reading` does otherwise."""
    with snapshot(dsn, f"read the sink {short(target)}") as connection:
        try:
            source = source_of(connection, target)
        except UsageError:
            return "no such table"
        query = "select count(*), coalesce(sum(hashtextextended(sink::text, 0)::numeric), 0) from {} as sink"
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL(query).format(source))
            count, total = cursor.fetchall()[0]
    return f"{count} rows, {total}"


BUSY = """with held as (
    select l.pid, n.nspname = any(current_schemas(false)) as own, n.nspname ~ '^run_r[0-9a-f]{8}(_|$)' as ours
    from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
    where l.database = (select oid from pg_database where datname = current_database())
)
select query from pg_stat_activity a where datname = current_database()
and backend_type = 'client backend' and application_name not like 'onceproof%%'
and (exists (select from held where held.pid = a.pid and own)
    or state = 'active' and not %(shared)s and not exists (select from held where held.pid = a.pid and ours)) limit 1"""
"""A statement that has touched another run's schema, and not this one's, is that run's."""


def busy(dsn: str, *, shared: bool = False) -> str:
    """Return what the server works on for other clients, shortened; empty if nothing: a statement, or a transaction
    that has touched the run's schema. In a `shared` database other people's statements do not count.

    The statement of a client that was killed goes on, and may yet commit. Raises StackError."""
    with snapshot(dsn, "name the statements at work") as connection, connection.cursor() as cursor:
        cursor.execute(BUSY, {"shared": shared})
        found = cursor.fetchone()
    return short(found[0]) if found else ""


@contextmanager
def snapshot(dsn: str, request: str, *, wait_ms: int = 0) -> Iterator[Any]:
    """A read-only transaction with one snapshot. Failures become words, without the password. `wait_ms` is how long
    it waits for a lock, and a tenth of what a statement may take; 0 stands for `STATEMENT_MS` in all."""
    limit_ms = wait_ms * 10 or STATEMENT_MS
    try:
        with closing(psycopg2.connect(dsn, connect_timeout=CONNECT_S, application_name="onceproof sink")) as connection:
            connection.set_session(isolation_level=ISOLATION_LEVEL_REPEATABLE_READ, readonly=True)
            with connection.cursor() as cursor:
                cursor.execute(SETTINGS)
                cursor.execute(f"set statement_timeout = {limit_ms}; set lock_timeout = {wait_ms}")
            yield connection
            connection.rollback()
    except psycopg2.errors.QueryCanceled as failure:
        raise UsageError(f"asked Postgres to {request}; it took longer than {limit_ms / 1000:g} s") from failure
    except psycopg2.errors.LockNotAvailable as failure:
        saw = f"a transaction that writes locked every reader out for {wait_ms / 1000:g} s"
        raise UsageError(f"asked Postgres to {request}; {saw}") from failure
    except (psycopg2.OperationalError, psycopg2.InterfaceError) as failure:
        raise StackError(f"asked Postgres to {request}; saw {_words(failure)}. See logs/postgres.log") from failure
    except psycopg2.errors.UndefinedTable as failure:
        raise Missing(f"asked Postgres to {request}; it said: {_words(failure)}. Mend `sink`") from failure
    except psycopg2.Error as failure:
        text = f"asked Postgres to {request}; it said: {_words(failure)}. Mend `sink`"
        raise (Unmade(text) if isinstance(failure, UNMADE) else UsageError(text)) from failure


def source_of(connection: Any, target: str) -> sql.Composable:
    """Return what stands behind FROM: the query in brackets, or the server's own spelling of the table's name. Raises
    UsageError if there is none of that name."""
    if v.is_query(target):
        return bracketed(target)
    with connection.cursor() as cursor:
        try:
            cursor.execute(_TABLE, (target,))
            found = cursor.fetchone()
        except (psycopg2.ProgrammingError, psycopg2.NotSupportedError):
            found = None
    if found is None:
        request = f"asked for the sink table {short(target)}; the database has none of that name"
        raise Missing(f"{request}. Make it in `setup`, or mend the name in `sink`")
    return sql.SQL(found[0])


def _columns(connection: Any, source: sql.Composable, target: str, dsn: str) -> tuple[SinkColumn, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("select * from {} as sink limit 0").format(source))
        described = [(column.name, column.type_code) for column in cursor.description]
        cursor.execute(_TYPES, ([oid for _, oid in described],))
        types = {oid: (name, words, textual) for oid, name, words, textual in cursor.fetchall()}
        if v.is_query(target):
            found = column_types.of_query(dsn, source, columns=len(described))
        else:
            found = column_types.of_relation(cursor, column_types.relation(cursor, target))
    # What was changed in between has no modifiers, rather than another column's.
    exact = [words for _, words in found] if [oid for oid, _ in found] == [oid for _, oid in described] else []
    plain = [words for _, words, _ in (types[oid] for _, oid in described)]
    return tuple(
        _column(name, types[oid][0], words, types[oid][2], target=target)
        for (name, oid), words in zip(described, exact or plain, strict=True)
    )


def _unique(connection: Any, target: str, key: Sequence[str]) -> bool:
    """Return whether a unique index of the table covers only columns of the key."""
    if v.is_query(target):
        return False
    with connection.cursor() as cursor:
        cursor.execute(_UNIQUE, (list(key), target))
        return bool(cursor.fetchone()[0])


def bracketed(query: str) -> sql.Composable:
    """Return a query in brackets."""
    # The line break ends a comment that would otherwise eat the bracket.
    return sql.SQL("(") + sql.SQL(query.rstrip().rstrip(";")) + sql.SQL("\n)")


def _column(name: str, type_: str, words: str, textual: bool, *, target: str) -> SinkColumn:
    family = FAMILIES.get(type_, "text" if textual else "")
    if not family:
        request = f"the sink {short(target)} has a column {name} of type {words}, which cannot be compared exactly"
        raise UsageError(f"{request}. Read the sink by a query that casts it, and cast it in `expected` alike")
    return SinkColumn(name=name, type=words, family=family)


def _cell(place: int, column: SinkColumn) -> sql.Composable:
    name = sql.Identifier(f"c{place}")
    if column.type == "real":
        # As the double it is: the short text of a real is another double.
        return sql.SQL("{}::float8::text").format(name)
    return sql.SQL("{}::text").format(name)


def short(target: str) -> str:
    text = " ".join(target.split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _words(failure: Exception) -> str:
    return " ".join(str(failure).split()) or type(failure).__name__
