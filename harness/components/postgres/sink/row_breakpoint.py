"""How Postgres stops a sink's writer at one row: the row after the k-th waits for an advisory lock."""

from __future__ import annotations

from zlib import crc32

from psycopg2 import sql

from harness.context import BlockedWriter
from harness.sinks.sql.row_breakpoint import SqlRowBreakpoint

LOCK = 0x6F6E6365  # one advisory lock per table: (LOCK, hash of its name)

INSTALL = """
create sequence {schema}.{rows} minvalue 0 start 0;
create sequence {schema}.{hold} minvalue -1 start -1;
create function {schema}.{function}() returns trigger language plpgsql as $$
begin
  if nextval({counted}) = (select last_value from {schema}.{hold}) then
    perform pg_advisory_xact_lock_shared({lock}, {slot});
  end if;
  return new;
end $$;
create trigger onceproof_row_breakpoint before insert on {schema}.{table}
  for each row execute function {schema}.{function}();
"""


class RowBreakpoint(SqlRowBreakpoint):
    """One table's."""

    def _connect(self) -> None:
        super()._connect()
        self._locked = False

    def _install(self, table: str) -> None:
        schema = self._own.name
        rows, hold, function = (f"onceproof_{name}_{crc32(table.encode()):x}" for name in ("rows", "hold", "stop"))
        self._rows, self._hold = f'"{schema}".{rows}', f'"{schema}".{hold}'
        self._slot = self._ask("select hashtext(%s)", f"{schema} {table}")
        parts: dict[str, sql.Composable] = {
            "schema": sql.Identifier(schema),
            "table": sql.Identifier(table),
            "rows": sql.Identifier(rows),
            "hold": sql.Identifier(hold),
            "function": sql.Identifier(function),
            "counted": sql.Literal(self._rows),
            "lock": sql.Literal(LOCK),
            "slot": sql.Literal(self._slot),
        }
        with self._connection.cursor() as cursor:
            cursor.execute(sql.SQL(INSTALL).format(**parts))

    def _ask(self, query: str, *values: object) -> int:
        row = self._row(query, *values)
        return int(row[0]) if row else 0

    def rows(self) -> int:
        """Return how many rows the table has been handed so far, committed or not."""
        return self._ask(f"select case when is_called then last_value + 1 else 0 end from {self._rows}")

    def recount(self, rows: int) -> None:
        """If the server was killed, go on from `rows`, and hold no writer: a sequence comes back with a number that was
        logged in advance. Raises StackError."""
        self.rows()
        if self._killed:
            self._killed = False
            self._ask("select setval(%s, %s, %s)", self._rows, max(rows - 1, 0), rows > 0)
            self.release()

    def block_after(self, rows: int) -> None:
        """Let rows in all reach the table and hold the next one (the first row has number 0)."""
        if not self._locked:
            self._ask("select 1 from (select pg_advisory_lock(%s, %s)) as locked", LOCK, self._slot)
            self._locked = True
        self._ask("select setval(%s, %s)", self._hold, rows)

    def blocked(self) -> BlockedWriter | None:
        """Return the writer that waits at the row breakpoint now, if any."""
        row = self._row(
            "select a.pid, host(a.client_addr), a.client_port"
            " from pg_locks l join pg_stat_activity a on a.pid = l.pid"
            " where l.locktype = 'advisory' and not l.granted and l.classid = %s::bigint::oid"
            " and l.objid = (%s::bigint & 4294967295)::oid",
            LOCK,
            self._slot,
        )
        if row is None:
            return None
        return BlockedWriter(int(row[0]), (row[1], row[2]) if row[1] else None, self.rows() - 1)

    def release(self) -> None:
        """Hold nothing from now on, and let waiting writers go on."""
        self._ask("select setval(%s, -1)", self._hold)
        self._ask("select 1 from (select pg_advisory_unlock_all()) as unlocked")
        self._locked = False
