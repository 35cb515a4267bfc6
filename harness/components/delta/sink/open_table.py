"""One Delta table of a run, where it can be reached."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from harness.components.delta.sink import rows
from harness.sinks.base import Reading
from harness.sinks.table import SinkColumn


@dataclass(frozen=True)
class OpenTable:
    """The table whose data and log lie in `folder`."""

    folder: Path

    def columns(self) -> tuple[SinkColumn, ...]:
        """Its columns, without the rows."""
        return rows.columns(self.folder)

    def reading(self, *, wait_ms: int = 0) -> AbstractContextManager[Reading]:
        """Its columns and rows, of its newest version. No lock keeps readers out."""
        return rows.reading(self.folder)

    def mark(self) -> str:
        """The version that is the newest: its rows change with no other one."""
        return rows.mark(self.folder)

    def busy(self) -> str:
        """There is no server that could be at work without a process of the pipeline."""
        return ""
