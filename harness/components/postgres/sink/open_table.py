"""One table or query of a run in Postgres, where it can be reached.

Types have their modifiers (`column_types`), and a table says whether its key is unique. The server writes every value
as text in ISO dates, UTC and the shortest exact floats. Table names are looked up by the server, and quoted by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import ISOLATION_LEVEL_REPEATABLE_READ

from harness.components.postgres.run_schema import Schema, connected
from harness.components.postgres.sink import column_types, hides_duplicates
from harness.components.postgres.sink.row_breakpoint import RowBreakpoint
from harness.errors import StackError, UsageError, one_line
from harness.fields import values as v
from harness.sinks.base import Missing, Unmade, Writer
from harness.sinks.sql.table import FETCH_ROWS, SqlTable, short
from harness.sinks.table import SinkColumn, SinkTable

UNMADE = (psycopg2.errors.UndefinedFunction, psycopg2.errors.UndefinedObject)
STATEMENT_MS = 120_000

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
BUSY = """with held as (
    select l.pid, n.nspname = any(current_schemas(false)) as own, n.nspname ~ '^run_r[0-9a-f]{8}(_|$)' as ours
    from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
    where l.database = (select oid from pg_database where datname = current_database())
)
select query from pg_stat_activity a where datname = current_database()
and backend_type = 'client backend' and application_name not like 'onceproof%%'
and (exists (select from held where held.pid = a.pid and own)
    or state = 'active' and not %(shared)s and not exists (select from held where held.pid = a.pid and ours)) limit 1"""
"""A statement that has touched another run's schema, and not this one's, is that run's. In a `shared` database other
people's statements do not count."""
WRITERS = """
with changed as (
  select l.pid, l.virtualtransaction, c.oid as relation, n.nspname = current_schema() as ours
  from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
  where l.locktype = 'relation' and l.granted and c.relkind in ('r', 'p')
  and l.database = (select oid from pg_database where datname = current_database())
  and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
)
select distinct changed.pid, changed.relation, a.query as statement, changed.ours
from changed join pg_stat_activity a on a.pid = changed.pid
where a.backend_xid is not null and a.backend_type = 'client backend' and a.application_name not like 'onceproof%'
union
select null, changed.relation, 'prepared transaction ' || p.gid, changed.ours
from pg_prepared_xacts p
join pg_locks own on own.locktype = 'transactionid' and own.transactionid = p.transaction and own.pid is null
join changed on changed.virtualtransaction = own.virtualtransaction and changed.pid is null
order by 2, 3
"""
"""Open and prepared transactions that have written, by table. A lock alone does not say that anything was written: a
transaction has an id from its first write on."""
READ_BY_US = """
select l.relation from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
where l.pid = pg_backend_pid() and l.locktype = 'relation' and c.relkind in ('r', 'p') and n.nspname <> 'pg_catalog'
"""


@dataclass(frozen=True)
class OpenTable(SqlTable):
    """One table or query of a run."""

    own: Schema

    at_work = BUSY
    is_there = "select 1 from pg_tables where schemaname = %(name)s and tablename = %(table)s"
    breakpoint = RowBreakpoint

    def now(self) -> int | None:
        """Return a transaction that is younger than all there were."""
        return hides_duplicates.now(self.own.dsn)

    def tried(self, table: SinkTable, *, after: int | None) -> SinkTable:
        """With `folds` and `folding` filled in."""
        return hides_duplicates.tried(self.own.dsn, self.target, table, after=after)

    @contextmanager
    def snapshot(self, request: str, *, wait_ms: int = 0) -> Iterator[Any]:
        """A connection in a read-only transaction with one snapshot."""
        limit_ms = wait_ms * 10 or STATEMENT_MS
        try:
            with closing(connected(self.own.dsn, "onceproof sink")) as connection:
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
            words = f"saw {one_line(failure)}. See logs/postgres.log"
            raise StackError(f"asked Postgres to {request}; {words}") from failure
        except psycopg2.errors.UndefinedTable as failure:
            raise Missing(f"asked Postgres to {request}; it said: {one_line(failure)}. Mend `sink`") from failure
        except psycopg2.Error as failure:
            text = f"asked Postgres to {request}; it said: {one_line(failure)}. Mend `sink`"
            raise (Unmade(text) if isinstance(failure, UNMADE) else UsageError(text)) from failure

    def _source(self, connection: Any) -> sql.Composable:
        """Return what stands behind FROM: the query in brackets, or the server's own spelling of the table's name.
        Raises Missing if there is none of that name."""
        if v.is_query(self.target):
            return column_types.bracketed(self.target)
        with connection.cursor() as cursor:
            try:
                cursor.execute(_TABLE, (self.target,))
                found = cursor.fetchone()
            except (psycopg2.ProgrammingError, psycopg2.NotSupportedError):
                found = None
        if found is None:
            request = f"asked for the sink table {short(self.target)}; the database has none of that name"
            raise Missing(f"{request}. Make it in `setup`, or mend the name in `sink`")
        return sql.SQL(found[0])

    def _columns(self, connection: Any) -> tuple[SinkColumn, ...]:
        source = self._source(connection)
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("select * from {} as sink limit 0").format(source))
            described = [(column.name, column.type_code) for column in cursor.description]
            cursor.execute(_TYPES, ([oid for _, oid in described],))
            types = {oid: (name, words, textual) for oid, name, words, textual in cursor.fetchall()}
            if v.is_query(self.target):
                found = column_types.of_query(self.own.dsn, source, columns=len(described))
            else:
                found = column_types.of_relation(cursor, column_types.relation(cursor, self.target))
        # What was changed in between has no modifiers, rather than another column's.
        exact = [words for _, words in found] if [oid for oid, _ in found] == [oid for _, oid in described] else []
        plain = [words for _, words, _ in (types[oid] for _, oid in described)]
        return tuple(
            _column(name, types[oid][0], words, types[oid][2], target=self.target)
            for (name, oid), words in zip(described, exact or plain, strict=True)
        )

    @contextmanager
    def _cells(self, connection: Any, columns: Sequence[SinkColumn]) -> Iterator[Any]:
        cells = sql.SQL(", ").join(_cell(place, column) for place, column in enumerate(columns))
        names = sql.SQL(", ").join(sql.Identifier(f"c{place}") for place in range(len(columns)))
        query = sql.SQL("select {} from {} as sink({})").format(cells, self._source(connection), names)
        with connection.cursor(name="onceproof") as cursor:
            cursor.itersize = FETCH_ROWS
            cursor.execute(query)
            yield cursor

    def _digest(self, connection: Any) -> sql.Composable:
        query = "select count(*), coalesce(sum(hashtextextended(sink::text, 0)::numeric), 0) from {} as sink"
        return sql.SQL(query).format(self._source(connection))

    def _is_unique(self, connection: Any) -> bool:
        if v.is_query(self.target):
            return False
        with connection.cursor() as cursor:
            cursor.execute(_UNIQUE, (list(self.key), self.target))
            return bool(cursor.fetchone()[0])

    def _writers(self, connection: Any) -> dict[Writer, bool]:
        with connection.cursor() as cursor:
            cursor.execute(WRITERS)
            return {Writer(row[0], row[1], short(row[2])): row[3] for row in cursor.fetchall()}

    def _read_by(self, connection: Any) -> set[int] | None:
        with connection.cursor() as cursor:
            cursor.execute("savepoint reading")
            try:
                source = self._source(connection)
                cursor.execute(sql.SQL("select * from {} as sink limit 0").format(source))
                cursor.execute(READ_BY_US)
            except UsageError:
                return set()
            except (psycopg2.errors.LockNotAvailable, psycopg2.errors.QueryCanceled, psycopg2.ProgrammingError):
                cursor.execute("rollback to savepoint reading")
                return None
            return {int(row[0]) for row in cursor.fetchall()}


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
