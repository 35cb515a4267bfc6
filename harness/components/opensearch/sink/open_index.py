"""One index of a run, where it can be reached."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from harness.components.opensearch.run_indexes import Indexes
from harness.components.opensearch.sink import reading
from harness.components.opensearch.sink.mapping import columns_of, fields_of
from harness.sinks.base import Reading
from harness.sinks.json_columns import Wanted
from harness.sinks.table import SinkColumn


@dataclass(frozen=True)
class OpenIndex:
    """One index of a run. `wanted` are the columns that the scenario names; empty: those of the mapping."""

    own: Indexes
    target: str
    wanted: tuple[Wanted, ...]
    key: tuple[str, ...]

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return its columns, without the rows."""
        return columns_of(fields_of(reading.described(self.own, self.target), self.wanted))

    def reading(self, *, wait_ms: int = 0) -> AbstractContextManager[Reading]:
        """Return its columns and rows, as of one refresh, which with `wait_ms` is its own if it comes in time. No lock
        keeps readers out."""
        return reading.reading(self.own, self.target, self.wanted, self.key, wait_ms=wait_ms)

    def mark(self) -> str:
        """Return a fingerprint that changes with each write."""
        return reading.mark(self.own, self.target)

    def busy(self) -> str:
        """Return the write that the server still works on for a pipeline."""
        return reading.busy(self.own)
