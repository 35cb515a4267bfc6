"""One table or query of a run, where it can be reached."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import pymysql

from harness.components.mariadb.database import words
from harness.components.mariadb.run_database import Database
from harness.components.mariadb.sink import rows, writers
from harness.components.mariadb.sink.row_breakpoint import RowBreakpoint
from harness.errors import SetupError
from harness.sinks.base import Reading, Writer
from harness.sinks.table import SinkColumn, SinkTable

UNTRIED = "no copy of its tables is made in MariaDB"


@dataclass(frozen=True)
class OpenTable:
    """One table or query of a run. `server` is the label of its database's part."""

    own: Database
    target: str
    key: tuple[str, ...]
    server: str

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return its columns, without the rows."""
        return rows.columns(self.own, self.target)

    def reading(self, *, wait_ms: int = 0) -> AbstractContextManager[Reading]:
        """Return its columns and rows, of one snapshot."""
        return rows.reading(self.own, self.target, key=self.key, wait_ms=wait_ms)

    def mark(self) -> str:
        """Return a fingerprint that changes when its rows do."""
        return rows.mark(self.own, self.target)

    def busy(self) -> str:
        """Return the statement that the server still works on for a pipeline."""
        return writers.busy(self.own)

    def now(self) -> int | None:
        """Nothing is tried on copies, so nothing needs it."""
        return None

    def tried(self, table: SinkTable, *, after: int | None) -> SinkTable:
        """A query, or a view, may hide a doubled row, and that is not tried here: said, so that it is not taken for
        tried."""
        folds = not table.unreadable and rows.may_fold(self.own, self.target)
        return replace(table, folds=None, folding=UNTRIED) if folds else table

    def writing(self, *, wait_ms: int) -> tuple[list[Writer], list[Writer]]:
        """Return who has written into it and not committed, and who into any table of the run."""
        return writers.writing(self.own, self.target, wait_ms=wait_ms)

    def is_table(self) -> bool:
        """Return whether it is there, and no view."""
        query = "select 1 from information_schema.tables where table_schema = database() and table_name = %s"
        with rows.snapshot(self.own, f"find the table {self.target}") as connection, connection.cursor() as cursor:
            cursor.execute(f"{query} and table_type = 'BASE TABLE'", (self.target,))
            return cursor.fetchone() is not None

    def row_breakpoint(self) -> RowBreakpoint:
        """Count its rows from now on."""
        try:
            return RowBreakpoint(self.own, self.target)
        except pymysql.Error as failure:
            saw = f"asked to count the rows of {self.target}; saw {words(failure)}"
            raise SetupError(
                f"{saw}. Make the table in the scenario's `setup`, or mend its name in `sink`"
            ) from failure
