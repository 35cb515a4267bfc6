"""A table of a format that keeps versions, as a sink: what is the same whichever library reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from harness.run_folder.database import connection
from harness.sinks.arrow import Table
from harness.sinks.base import Missing, Reading
from harness.sinks.table import SinkColumn


class TableFormat(Protocol):
    """How a library reads a table, which is in a folder; a module of one format has these functions."""

    def named(self, folder: Path) -> Table:
        """What the table is called in words, and what its library raises."""

    def opened(self, folder: Path) -> Any:
        """Its newest version. Raises Missing, StackError; UsageError for a table that may not be read right."""

    def version_of(self, table: Any) -> str:
        """Which version of which table."""

    def schema(self, table: Any) -> pa.Schema:
        """Its columns."""

    def scanned(self, table: Any) -> pa.RecordBatchReader:
        """Its rows."""


@dataclass(frozen=True)
class OpenTable:
    """The table whose data and metadata lie in `folder`."""

    folder: Path
    form: TableFormat

    def columns(self) -> tuple[SinkColumn, ...]:
        """Its columns, without the rows. Raises as `reading` does."""
        table, named = self.form.opened(self.folder), self.form.named(self.folder)
        with closing(connection()) as db:
            with named.stack_errors():
                rows = pa.RecordBatchReader.from_batches(self.form.schema(table), iter(()))
            return named.columns(db, rows)

    @contextmanager
    def reading(self, *, wait_ms: int = 0) -> Iterator[Reading]:
        """Its columns and canonical rows, of its newest version. No lock keeps readers out. Raises Missing if there is
        none, UsageError if it holds what cannot be compared, StackError if it cannot be read."""
        table, named = self.form.opened(self.folder), self.form.named(self.folder)
        with named.stack_errors():
            rows = self.form.scanned(table)
        with named.reading(rows, self.form.version_of(table)) as found:
            yield found

    def mark(self) -> str:
        """The version that is the newest: its rows change with no other one. A table that is not there yet has a mark
        too."""
        try:
            return self.form.version_of(self.form.opened(self.folder))
        except Missing:
            return "no such table"

    def busy(self) -> str:
        """There is no server that could be at work without a process of the pipeline."""
        return ""
