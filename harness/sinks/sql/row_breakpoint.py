"""Stops a sink's writer at one exact row: a trigger in the run's own part that the server fires before each insert.

Each row handed to the table draws a number from a sequence. A rollback does not undo that, so rows of a transaction
that never commits are counted too. The row after the k-th waits for a lock that the harness holds; while it waits, k
rows have reached the sink and their writer is blocked. After the fault the lock is released, and the server does with
the waiting statement what it does with any whose client is gone.

The row breakpoint adds a row trigger to the sink's table: it changes the system under test and the report says so.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

from harness.context import BlockedWriter
from harness.errors import StackError
from harness.sinks.sql.part import SqlPart


class SqlRowBreakpoint(ABC):
    """The row trigger on one table of one run. Thread-safe; close() releases every writer. Raises what the server's
    client raises where it cannot be made."""

    def __init__(self, own: SqlPart, table: str) -> None:
        self._own = own
        self._lock = threading.Lock()
        self._killed = False
        self._connect()
        self._install(table)

    def _connect(self) -> None:
        self._connection = self._own.connect("onceproof row breakpoint")

    def _row(self, query: str, *values: object) -> Any:
        """Return the first one; None if there is none. Raises StackError for what the server refuses, or when it does
        not answer."""
        try:
            with self._lock:
                try:
                    return self._answer(query, values)
                except self._own.error:
                    if not self._own.lost(self._connection):
                        raise
                    # The server was killed and is back; a client that waited at the row breakpoint is gone.
                    self._connect()
                    self._killed = True
                    return self._answer(query, values)
        except self._own.error as failure:
            saw = self._own.words(failure)
            raise StackError(f"asked {self._own.title} how many rows the sink was handed; saw {saw}") from failure

    def _answer(self, query: str, values: tuple[object, ...]) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(query, values or None)
            return cursor.fetchone()

    @abstractmethod
    def _install(self, table: str) -> None:
        """Make the trigger, and what it draws numbers from. Other tables of the part may be counted too."""

    @abstractmethod
    def rows(self) -> int:
        """Return how many rows the table has been handed so far, committed or not."""

    @abstractmethod
    def recount(self, rows: int) -> None:
        """If the server was killed, go on from `rows`, and hold no writer. Raises StackError."""

    @abstractmethod
    def block_after(self, rows: int) -> None:
        """Let rows in all reach the table and hold the next one (the first row has number 0)."""

    @abstractmethod
    def blocked(self) -> BlockedWriter | None:
        """Return the writer that waits at the row breakpoint now, if any."""

    @abstractmethod
    def release(self) -> None:
        """Hold nothing from now on, and let waiting writers go on."""

    def close(self) -> None:
        """Release every writer and disconnect. The end of the run's part takes the trigger with it."""
        self._connection.close()
