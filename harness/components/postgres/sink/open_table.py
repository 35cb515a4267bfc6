"""One table or query of a run, where it can be reached."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import psycopg2

from harness.components.postgres.sink import hides_duplicates, rows, writers
from harness.components.postgres.sink.row_breakpoint import RowBreakpoint
from harness.errors import SetupError
from harness.sinks.base import Reading, Writer
from harness.sinks.table import SinkColumn, SinkTable


@dataclass(frozen=True)
class OpenTable:
    """One table or query of a run. `server` is the label of its database's part, `schema` the run's own there."""

    dsn: str
    target: str
    key: tuple[str, ...]
    server: str
    shared: bool
    schema: str

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return its columns, without the rows."""
        return rows.columns(self.dsn, self.target)

    def reading(self, *, wait_ms: int = 0) -> AbstractContextManager[Reading]:
        """Return its columns and rows, of one snapshot."""
        return rows.reading(self.dsn, self.target, key=self.key, wait_ms=wait_ms)

    def mark(self) -> str:
        """Return a fingerprint that changes when its rows do."""
        return rows.mark(self.dsn, self.target)

    def busy(self) -> str:
        """Return the statement that the server still works on for a pipeline."""
        return rows.busy(self.dsn, shared=self.shared)

    def now(self) -> int | None:
        """Return a transaction that is younger than all there were."""
        return hides_duplicates.now(self.dsn)

    def tried(self, table: SinkTable, *, after: int | None) -> SinkTable:
        """With `folds` and `folding` filled in."""
        return hides_duplicates.tried(self.dsn, self.target, table, after=after)

    def writing(self, *, wait_ms: int) -> tuple[list[Writer], list[Writer]]:
        """Return who has written into it and not committed, and who into any table of the run."""
        return writers.writing(self.dsn, self.target, wait_ms=wait_ms)

    def is_table(self) -> bool:
        """Return whether it is there, and no view."""
        query = "select 1 from pg_tables where schemaname = %s and tablename = %s"
        with rows.snapshot(self.dsn, f"find the table {self.target}") as connection, connection.cursor() as cursor:
            cursor.execute(query, (self.schema, self.target))
            return cursor.fetchone() is not None

    def row_breakpoint(self) -> RowBreakpoint:
        """Count its rows from now on."""
        try:
            return RowBreakpoint(self.dsn, self.schema, self.target)
        except psycopg2.Error as failure:
            saw = f"asked to count the rows of {self.target}; saw {str(failure).strip()}"
            raise SetupError(f"{saw}. Make the table in the scenario's `setup`") from failure
