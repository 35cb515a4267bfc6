"""How MariaDB stops a sink's writer at one row: each row takes a lock that bears its number, and the harness holds
that of the row after the k-th."""

from __future__ import annotations

from hashlib import sha256

from harness.components.mariadb.database import quoted
from harness.context import BlockedWriter
from harness.sinks.sql.row_breakpoint import SqlRowBreakpoint

HELD_S = 24 * 3600
"""How long a writer waits at most: a run is over by then."""
INSTALL = (
    "create sequence {rows} start 0 minvalue 0 nocache",
    "create trigger {rows}_stop before insert on {table} for each row begin "
    "declare lock_name varchar(64) default concat('{name}', nextval({rows})); "
    f"do get_lock(lock_name, {HELD_S}); do release_lock(lock_name); end",
)
BLOCKED = """
select p.id, p.host from performance_schema.metadata_locks m
join performance_schema.threads t on t.thread_id = m.owner_thread_id
join information_schema.processlist p on p.id = t.processlist_id
where m.object_type = 'USER LEVEL LOCK' and m.lock_status = 'PENDING' and m.object_name = %s
"""


class RowBreakpoint(SqlRowBreakpoint):
    """One table's."""

    _held: int | None = None

    def _install(self, table: str) -> None:
        # Other runs may be counted too, and the server takes 64 characters.
        mark = sha256(f"{self._own.name} {table}".encode()).hexdigest()[:24]
        self._name, self._rows = f"onceproof {mark} ", f"onceproof_rows_{mark}"
        for statement in INSTALL:
            self._answer(statement.format(table=quoted(table), name=self._name, rows=self._rows), ())

    def rows(self) -> int:
        """Return how many rows the table has been handed so far, committed or not."""
        return int(self._row(f"select next_not_cached_value from {self._rows}")[0])

    def recount(self, rows: int) -> None:
        """If the server was killed, go on from `rows`, and hold no writer: what was drawn for rows that had not
        committed may be forgotten. Raises StackError."""
        left = self.rows()
        if self._killed:
            self._killed, self._held = False, None
            if left < rows:
                self._row(f"select setval({self._rows}, %s, true)", rows - 1)

    def block_after(self, rows: int) -> None:
        """Let rows in all reach the table and hold the next one (the first row has number 0)."""
        before, self._held = self._held, rows
        if before != rows:
            self._row("select get_lock(%s, 0)", f"{self._name}{rows}")
        if before not in (None, rows):
            self._row("select release_lock(%s)", f"{self._name}{before}")

    def blocked(self) -> BlockedWriter | None:
        """Return the writer that waits at the row breakpoint now, if any."""
        found = self._row(BLOCKED, f"{self._name}{self._held}") if self._held is not None else None
        if found is None:
            return None
        address, _, port = found[1].rpartition(":")
        return BlockedWriter(int(found[0]), (address, int(port)) if address else None, self.rows() - 1)

    def release(self) -> None:
        """Hold nothing from now on, and let waiting writers go on."""
        held, self._held = self._held, None
        if held is not None:
            self._row("select release_lock(%s)", f"{self._name}{held}")
