"""Who has written into a table and not committed, and who is at work: by the locks that performance_schema shows."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pymysql

from harness.components.mariadb.run_database import Database
from harness.components.mariadb.sink import rows
from harness.sinks.base import Writer
from harness.wait import pause

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
    p.id in (select processlist_id from ({LOCKED}) as locked where object_schema = %s)
    or p.db = %s and p.command <> 'Sleep' and p.id not in ({OURS})
) limit 1
"""
READ_BY_US = """
select distinct m.object_schema, m.object_name from performance_schema.metadata_locks m
join performance_schema.threads t on t.thread_id = m.owner_thread_id
where m.object_type = 'TABLE' and t.processlist_id = connection_id()
and m.object_schema not in ('performance_schema', 'information_schema', 'mysql')
"""


def writing(own: Database, target: str, *, wait_ms: int) -> tuple[list[Writer], list[Writer]]:
    """Return who has written into what a sink reads, and who into any table of the run's database. If it is not known
    what the sink reads, every table of the run's database counts. Raises HarnessError."""
    with rows.snapshot(own, "name the transactions that write", wait_ms=wait_ms) as connection:
        with connection.cursor() as cursor:
            pause(STALE_S)
            cursor.execute(WRITERS, ())
            found = [
                Writer(int(number), _number(schema, table), schema, rows.short(statement))
                for number, schema, table, statement in cursor.fetchall()
            ]
        ours = [writer for writer in found if writer.schema == own.name]
        tables = _read_by(connection, target) if found else set()
    return (ours if tables is None else [writer for writer in found if writer.table in tables]), ours


def busy(own: Database) -> str:
    """Return what the server works on for other clients, shortened; empty if nothing: a statement, or a transaction
    that has touched the run's database.

    The statement of a client that was killed goes on, and may yet commit. Raises StackError."""
    with rows.snapshot(own, "name the statements at work") as connection, connection.cursor() as cursor:
        cursor.execute(BUSY, (own.name, own.name))
        found = cursor.fetchone()
    return rows.short(found[0]) if found else ""


def _number(schema: str, table: str) -> int:
    return crc32(f"{schema}.{table}".encode())


def _read_by(connection: Any, target: str) -> set[int] | None:
    """Return the tables that a table, view or query reads: those that we hold a lock on once we have read nothing of
    it. None if that is not known, as when a writer locks even readers out."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(f"select * from {rows.source_of(target)} as sink limit 0")
            cursor.execute(READ_BY_US)
        except pymysql.Error as failure:
            return set() if failure.args[0] in rows.ABSENT else None
        return {_number(schema, table) for schema, table in cursor.fetchall()}
