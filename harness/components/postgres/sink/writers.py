"""Who is writing into Postgres right now: open and prepared transactions that have written, by table."""

from __future__ import annotations

from typing import Any

import psycopg2
from psycopg2 import sql

from harness.components.postgres.sink import rows
from harness.errors import UsageError
from harness.sinks.base import Writer

WRITERS = """
with changed as (
  select l.pid, l.virtualtransaction, c.oid as relation, n.nspname as schema
  from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
  where l.locktype = 'relation' and l.granted and c.relkind in ('r', 'p')
  and l.database = (select oid from pg_database where datname = current_database())
  and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
)
select distinct changed.pid, changed.relation, changed.schema, a.query as statement
from changed join pg_stat_activity a on a.pid = changed.pid
where a.backend_xid is not null and a.backend_type = 'client backend' and a.application_name not like 'onceproof%'
union
select null, changed.relation, changed.schema, 'prepared transaction ' || p.gid
from pg_prepared_xacts p
join pg_locks own on own.locktype = 'transactionid' and own.transactionid = p.transaction and own.pid is null
join changed on changed.virtualtransaction = own.virtualtransaction and changed.pid is null
order by 2, 4
"""
"""A lock alone does not say that anything was written: a transaction has an id from its first write on."""
READ_BY_US = """
select l.relation from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
where l.pid = pg_backend_pid() and l.locktype = 'relation' and c.relkind in ('r', 'p') and n.nspname <> 'pg_catalog'
"""


def writing(dsn: str, target: str, *, wait_ms: int) -> tuple[list[Writer], list[Writer]]:
    """Return who has written into what a sink reads, and who into any table of the run's schema. If it is not known
    what the sink reads, every table of the run's schema counts. Raises HarnessError."""
    with rows.snapshot(dsn, "name the transactions that write", wait_ms=wait_ms) as connection:
        with connection.cursor() as cursor:
            cursor.execute("select current_schema()")
            (own,) = cursor.fetchone() or ("",)
            cursor.execute(WRITERS)
            found = [Writer(row[0], row[1], row[2], rows.short(row[3])) for row in cursor.fetchall()]
        ours = [writer for writer in found if writer.schema == own]
        tables = _read_by(connection, target) if found else set()
    return (ours if tables is None else [writer for writer in found if writer.table in tables]), ours


def _read_by(connection: Any, target: str) -> set[int] | None:
    """Return the tables that a table, view or query reads: those that we hold a lock on once we have read nothing of
    it. None if that is not known, as when a writer locks even readers out."""
    with connection.cursor() as cursor:
        cursor.execute("savepoint reading")
        try:
            source = rows.source_of(connection, target)
            cursor.execute(sql.SQL("select * from {} as sink limit 0").format(source))
            cursor.execute(READ_BY_US)
        except UsageError:
            return set()
        except (psycopg2.errors.LockNotAvailable, psycopg2.errors.QueryCanceled, psycopg2.ProgrammingError):
            cursor.execute("rollback to savepoint reading")
            return None
        return {int(row[0]) for row in cursor.fetchall()}
