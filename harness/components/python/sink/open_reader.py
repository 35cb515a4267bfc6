"""One reader of a run, where it can be called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from harness.components.python.calls import NothingThere, call
from harness.components.python.namespaces import RunNamespace
from harness.components.python.sink.arrow_types import refusal
from harness.errors import StackError, UsageError
from harness.sinks.arrow import Table
from harness.sinks.base import Missing, Reading
from harness.sinks.table import SinkColumn, SinkTable

NOTHING = "nothing yet"
FOLDS = "its reader folds rows, as the scenario says"
UNTRIED = "code of one's own cannot be tried; where it gives every row, say `view: complete`"


@dataclass(frozen=True)
class OpenReader:
    """The function that `key` names in the run's namespace. `folds`: the scenario says that it leaves out equal rows,
    `complete` that it gives every row."""

    own: RunNamespace
    key: str
    folds: bool
    complete: bool = False

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return its columns: the whole is read for them, as only the code knows them."""
        with self.reading() as found:
            return found.columns

    @contextmanager
    def reading(self, *, wait_ms: int = 0) -> Iterator[Reading]:
        """What one call gave, whole before any of it is read. Raises Missing where it gave not even a schema,
        UsageError for what cannot be compared, StackError where the code raises, dies or is late."""
        with self._stream() as rows, self._named.reading(rows, "") as found:
            yield found

    def mark(self) -> str:
        """Return a digest of all rows, in whatever order they come: nothing cheaper tells that none has changed."""
        try:
            with self._stream() as rows:
                return self._named.fingerprint(rows)
        except Missing:
            return NOTHING

    def busy(self) -> str:
        """Return what the module's own `busy` returns; empty if it has none."""
        code = self.own.code[self.key]
        if "busy" not in self.own.able[self.key]:
            return ""
        with call(self.own.spawn, code, self.own.namespace, "busy", scratch=self.own.scratch) as (gave, _):
            return str(gave["answer"])

    @property
    def server(self) -> str:
        """There is no proof of it."""
        return self.own.namespace.name

    def tried(self, table: SinkTable, *, after: int | None) -> SinkTable:
        """Return whether the code leaves out rows cannot be tried: the scenario has to say it, and a note says so."""
        if table.unreadable:
            return table
        if self.folds:
            return replace(table, folds=True, folding=FOLDS)
        if not self.complete:
            return replace(table, folds=None, folding=UNTRIED)
        words = f"its rows are those that {self._target} gives: a repetition that it leaves out does not show"
        return replace(table, note=words)

    @property
    def _target(self) -> str:
        return self.own.code[self.key].target

    @property
    def _named(self) -> Table:
        return Table(f"the rows of {self._target}", ())

    @contextmanager
    def _stream(self) -> Iterator[pa.RecordBatchReader]:
        own, code = self.own, self.own.code[self.key]
        try:
            with call(own.spawn, code, own.namespace, "read", scratch=own.scratch) as (gave, folder):
                with self._named.stack_errors():
                    path = folder / "rows.arrow"
                    size, file = path.stat().st_size, pa.memory_map(str(path))
                    rows = pa.ipc.open_stream(file)
                if size != gave["bytes"]:
                    saw = f"{size} bytes of {gave['bytes']}; who writes into its open files?"
                    raise StackError(f"asked {code.target} for its rows; saw {saw}")
                if wrong := refusal(rows.schema):
                    raise UsageError(f"asked {code.target} for its rows; {wrong}")
                with file, rows:
                    yield rows
        except NothingThere as nothing:
            raise Missing(str(nothing)) from nothing
