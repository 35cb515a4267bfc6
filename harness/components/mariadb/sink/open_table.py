"""One table or query of a run in MariaDB, where it can be reached.

The server writes every value as text in UTC, decimals in full, and floats as the shortest text of the double. Who has
written and who is at work shows by the locks of performance_schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from math import ceil
from typing import Any
from zlib import crc32

import pymysql
from pymysql.constants import ER
from pymysql.cursors import SSCursor

from harness.components.mariadb.database import quoted, words
from harness.components.mariadb.run_database import TOOK_TOO_LONG, Database
from harness.components.mariadb.sink import column_types
from harness.components.mariadb.sink.row_breakpoint import RowBreakpoint
from harness.errors import StackError, UsageError
from harness.fields import values as v
from harness.sinks.base import Missing, Unmade, Writer
from harness.sinks.sql.table import SqlTable, short
from harness.sinks.table import SinkColumn, SinkTable
from harness.wait import pause

UNTRIED = "no copy of its tables is made in MariaDB"
STATEMENT_S = 120
NAME = "onceproof sink"
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
STALE_S = 0.12
"""`innodb_trx` is what it was when it was last read, if that was less than a tenth of a second ago."""
OURS = """
select a.processlist_id from performance_schema.session_connect_attrs a
where a.attr_name = 'program_name' and a.attr_value like 'onceproof%%'
"""
"""The connections of the harness."""
LOCKED = f"""
select t.processlist_id, m.object_schema, m.object_name from performance_schema.metadata_locks m
join performance_schema.threads t on t.thread_id = m.owner_thread_id
where m.object_type = 'TABLE' and m.lock_status = 'GRANTED' and m.object_name not like 'onceproof\\_%%'
and t.processlist_id not in ({OURS})
"""
"""Each table that another client's connection holds a lock on."""
WRITERS = f"""
select distinct locked.*, coalesce(p.info, concat('transaction of connection ', p.id)) from ({LOCKED}
    and m.lock_type in ('SHARED_WRITE', 'SHARED_NO_READ_WRITE', 'EXCLUSIVE')) as locked
join information_schema.innodb_trx x on x.trx_mysql_thread_id = locked.processlist_id
join information_schema.processlist p on p.id = locked.processlist_id
where x.trx_rows_modified > 0 order by 2, 3
"""
BUSY = f"""
select coalesce(p.info, concat('transaction of connection ', p.id)) from information_schema.processlist p
where p.id <> connection_id() and p.command <> 'Daemon' and (
    p.id in (select processlist_id from ({LOCKED}) as locked where object_schema = %(name)s)
    or p.db = %(name)s and p.command <> 'Sleep' and p.id not in ({OURS})
) limit 1
"""
READ_BY_US = """
select distinct m.object_schema, m.object_name from performance_schema.metadata_locks m
join performance_schema.threads t on t.thread_id = m.owner_thread_id
where m.object_type = 'TABLE' and t.processlist_id = connection_id()
and m.object_schema not in ('performance_schema', 'information_schema', 'mysql')
"""


@dataclass(frozen=True)
class OpenTable(SqlTable):
    """One table or query of a run."""

    own: Database

    at_work = BUSY
    is_there = """
    select 1 from information_schema.tables
    where table_schema = %(name)s and table_name = %(table)s and table_type = 'BASE TABLE'
    """
    breakpoint = RowBreakpoint

    def tried(self, table: SinkTable, *, after: int | None) -> SinkTable:
        """A query, or a view, may hide a doubled row, and that is not tried here: said, so that it is not taken for
        tried."""
        folds = not table.unreadable and self._may_fold()
        return replace(table, folds=None, folding=UNTRIED) if folds else table

    def _may_fold(self) -> bool:
        """Return whether it is a query, or the name of a view, which is one. Raises StackError."""
        if v.is_query(self.target):
            return True
        schema, _, name = self.target.rpartition(".")
        with self.snapshot(f"say what {self.target} is") as connection, connection.cursor() as cursor:
            cursor.execute(KIND_OF, (schema, name))
            found = cursor.fetchone()
        return found is not None and found[0] != "BASE TABLE"

    @contextmanager
    def snapshot(self, request: str, *, wait_ms: int = 0) -> Iterator[Any]:
        """A connection in a read-only transaction with one snapshot. The server waits for a lock for whole seconds."""
        limit_s = wait_ms / 100 or STATEMENT_S
        locked_s = ceil(wait_ms / 1000) or STATEMENT_S
        try:
            with closing(self.own.connect(NAME)) as connection, connection.cursor() as cursor:
                cursor.execute(f"set max_statement_time = {limit_s}, lock_wait_timeout = {locked_s}")
                cursor.execute("set transaction isolation level repeatable read")
                cursor.execute("start transaction with consistent snapshot, read only")
                yield connection
        except pymysql.Error as failure:
            raise _error(failure, request, limit_s, locked_s) from failure

    @property
    def _source(self) -> str:
        """What stands behind FROM: the query in brackets, or the table's name."""
        if v.is_query(self.target):
            # The line break ends a comment that would otherwise eat the bracket.
            return f"({self.target.rstrip().rstrip(';')}\n)"
        return ".".join(map(quoted, self.target.split(".")))

    def _columns(self, connection: Any) -> tuple[SinkColumn, ...]:
        with connection.cursor() as cursor:
            cursor.execute(f"select * from {self._source} as sink limit 0")
            described = [(field.name, column_types.column(field)) for field in cursor._result.fields]
        for name, found in described:
            if found is None:
                request = f"the sink {short(self.target)} has a column {name} of a type that cannot be compared exactly"
                raise UsageError(f"{request}. Read the sink by a query that casts it, and cast it in `expected` alike")
        return tuple(found for _, found in described if found is not None)

    @contextmanager
    def _cells(self, connection: Any, columns: Sequence[SinkColumn]) -> Iterator[Any]:
        cells = ", ".join(map(column_types.cell, columns))
        with connection.cursor(SSCursor) as cursor:
            cursor.execute(f"select {cells} from {self._source} as sink")
            yield cursor

    def _digest(self, connection: Any) -> str:
        cells = [f"coalesce(hex({column_types.cell(each)}), '-')" for each in self._columns(connection)]
        digest = f"cast(conv(left(md5(concat_ws(' ', {', '.join(cells)})), 15), 16, 10) as unsigned)"
        return f"select count(*), coalesce(sum({digest}), 0) from {self._source} as sink"

    def _is_unique(self, connection: Any) -> bool:
        if v.is_query(self.target) or "." in self.target or not self.key:
            return False
        # While the rows are read their connection answers nothing else.
        with closing(self.own.connect(NAME)) as other, other.cursor() as cursor:
            cursor.execute(UNIQUE, (self.target, self.key))
            return bool(cursor.fetchone()[0])

    def _writers(self, connection: Any) -> dict[Writer, bool]:
        with connection.cursor() as cursor:
            pause(STALE_S)
            cursor.execute(WRITERS, ())
            return {
                Writer(int(number), _number(schema, table), short(statement)): schema == self.own.name
                for number, schema, table, statement in cursor.fetchall()
            }

    def _read_by(self, connection: Any) -> set[int] | None:
        with connection.cursor() as cursor:
            try:
                cursor.execute(f"select * from {self._source} as sink limit 0")
                cursor.execute(READ_BY_US)
            except pymysql.Error as failure:
                return set() if failure.args[0] in ABSENT else None
            return {_number(schema, table) for schema, table in cursor.fetchall()}


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


def _number(schema: str, table: str) -> int:
    return crc32(f"{schema}.{table}".encode())
