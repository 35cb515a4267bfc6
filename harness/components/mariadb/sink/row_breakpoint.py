"""Stops a sink's writer at one exact row: a trigger in the run's own database that MariaDB fires before each insert.

Each row handed to the table draws a number from a sequence. A rollback does not undo that, so rows of a transaction
that never commits are counted too. Then the row takes a lock that bears this number. The harness holds the lock of the
row after the k-th: while its writer waits, k rows have reached the sink. After the fault the lock is released, and the
server does with the waiting statement what it does with any whose client is gone.

The row breakpoint adds a row trigger to the sink's table: it changes the system under test and the report says so.
"""

from __future__ import annotations

import threading
from hashlib import sha256
from typing import Any

import pymysql

from harness.components.mariadb.database import quoted, words
from harness.components.mariadb.run_database import Database
from harness.context import BlockedWriter
from harness.errors import StackError

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


class RowBreakpoint:
    """The row trigger on one table of one run. Thread-safe; close() releases every writer. Raises pymysql.Error where
    it cannot be made."""

    def __init__(self, own: Database, table: str) -> None:
        self._own = own
        # Other tables and other runs may be counted too, and the server takes 64 characters.
        mark = sha256(f"{own.name} {table}".encode()).hexdigest()[:24]
        self._name, self._rows = f"onceproof {mark} ", f"onceproof_rows_{mark}"
        self._lock = threading.Lock()
        self._held: int | None = None
        self._killed = False
        self._connect()
        for statement in INSTALL:
            self._answer(statement.format(table=quoted(table), name=self._name, rows=self._rows), ())

    def _connect(self) -> None:
        self._connection = self._own.connect(name="onceproof row breakpoint")

    def _ask(self, query: str, *values: object) -> Any:
        """Return the first row; None if there is none. Raises StackError for what the server refuses, or when it does
        not answer."""
        try:
            with self._lock:
                try:
                    return self._answer(query, values)
                except pymysql.Error:
                    if self._connection.open:
                        raise
                    # The server was killed and is back; a client that waited at the row breakpoint is gone.
                    self._connect()
                    self._killed = True
                    return self._answer(query, values)
        except pymysql.Error as failure:
            raise StackError(f"asked MariaDB how many rows the sink was handed; saw {words(failure)}") from failure

    def _answer(self, query: str, values: tuple[object, ...]) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(query, values or None)
            return cursor.fetchone()

    def rows(self) -> int:
        """Return how many rows the table has been handed so far, committed or not."""
        return int(self._ask(f"select next_not_cached_value from {self._rows}")[0])

    def recount(self, rows: int) -> None:
        """If the server was killed, go on from `rows`, and hold no writer: what was drawn for rows that had not
        committed may be forgotten. Raises StackError."""
        left = self.rows()
        if self._killed:
            self._killed, self._held = False, None
            if left < rows:
                self._ask(f"select setval({self._rows}, %s, true)", rows - 1)

    def block_after(self, rows: int) -> None:
        """Let rows in all reach the table and hold the next one (the first row has number 0)."""
        before, self._held = self._held, rows
        if before != rows:
            self._ask("select get_lock(%s, 0)", f"{self._name}{rows}")
        if before not in (None, rows):
            self._ask("select release_lock(%s)", f"{self._name}{before}")

    def blocked(self) -> BlockedWriter | None:
        """Return the writer that waits at the row breakpoint now, if any."""
        found = self._ask(BLOCKED, f"{self._name}{self._held}") if self._held is not None else None
        if found is None:
            return None
        address, _, port = found[1].rpartition(":")
        return BlockedWriter(int(found[0]), (address, int(port)) if address else None, self.rows() - 1)

    def release(self) -> None:
        """Hold nothing from now on, and let waiting writers go on."""
        held, self._held = self._held, None
        if held is not None:
            self._ask("select release_lock(%s)", f"{self._name}{held}")

    def close(self) -> None:
        """Release every writer and disconnect. The database's end takes the trigger with it."""
        self._connection.close()
