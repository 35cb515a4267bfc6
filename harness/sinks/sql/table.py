"""One table or query of a run on a server of SQL.

The rows are those of one read-only snapshot. The server writes every value as text, so nothing is rounded on the way; a
type that has no exact and comparable text is refused by name. Trailing blanks of `char(n)` are padding and not data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.checkers.cells import Row, canonical_rows
from harness.errors import SetupError, UsageError
from harness.sinks.base import Missing, Reading, Writer
from harness.sinks.sql.part import SqlPart
from harness.sinks.sql.row_breakpoint import SqlRowBreakpoint
from harness.sinks.table import SinkColumn, SinkTable

FETCH_ROWS = 20_000


@dataclass(frozen=True)
class SqlTable(ABC):
    """One of them. `server` is the label of its part, `shared`: the server has other users. Raises as `OpenSink`
    says."""

    own: SqlPart
    target: str
    key: tuple[str, ...]
    server: str
    shared: bool

    at_work: ClassVar[str]
    """The query for a statement of another client, or of its transaction that has touched the run's part."""
    is_there: ClassVar[str]
    """The query that has a row where it is a table of the run's part, and no view."""
    breakpoint: ClassVar[type[SqlRowBreakpoint]]

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return its columns, without the rows."""
        with self.snapshot(f"read the sink {short(self.target)}") as connection:
            return self._columns(connection)

    @contextmanager
    def reading(self, *, wait_ms: int = 0) -> Iterator[Reading]:
        """Its columns and canonical rows, in parts of at most `FETCH_ROWS`, of one snapshot."""
        with self.snapshot(f"read the sink {short(self.target)}", wait_ms=wait_ms) as connection:
            columns = self._columns(connection)
            with self._cells(connection, columns) as cursor:
                parts = self._parts(cursor, [column.family for column in columns])
                yield Reading(columns, parts, lambda: self._is_unique(connection))

    def _parts(self, cursor: Any, families: Sequence[str]) -> Iterator[list[Row]]:
        while part := cursor.fetchmany(FETCH_ROWS):
            try:
                yield canonical_rows(part, families)
            except ValueError as failure:
                # A time of more than a day, say.
                saw = f"holds what cannot be compared: {failure}"
                raise UsageError(f"the sink {short(self.target)} {saw}") from failure

    def mark(self) -> str:
        """Return a fingerprint that changes when the rows do: their count and the sum of their hashes, made in the
        server. A table that is not there yet has a fingerprint too."""
        try:
            with self.snapshot(f"read the sink {short(self.target)}") as connection, connection.cursor() as cursor:
                cursor.execute(self._digest(connection))
                count, total = cursor.fetchone()
        except Missing:
            return "no such table"
        return f"{count} rows, {total}"

    def busy(self) -> str:
        """Return what the server works on for other clients, shortened; empty if nothing. The statement of a client
        that was killed goes on, and may yet commit."""
        found = self._asked("name the statements at work", self.at_work)
        return short(found[0]) if found else ""

    def is_table(self) -> bool:
        """Return whether it is there, and no view."""
        return self._asked(f"find the table {self.target}", self.is_there) is not None

    def _asked(self, request: str, query: str) -> Any:
        """Return the first row of a query over the part's `name`, the `table`, and whether the server is `shared`."""
        with self.snapshot(request) as connection, connection.cursor() as cursor:
            cursor.execute(query, {"name": self.own.name, "table": self.target, "shared": self.shared})
            return cursor.fetchone()

    def writing(self, *, wait_ms: int) -> tuple[list[Writer], list[Writer]]:
        """Return who has written into what the sink reads and not committed, and who into any table of the run's part.
        If it is not known what the sink reads, every table of the run's part counts."""
        with self.snapshot("name the transactions that write", wait_ms=wait_ms) as connection:
            found = self._writers(connection)
            tables = self._read_by(connection) if found else set()
        ours = [writer for writer, own in found.items() if own]
        return (ours if tables is None else [writer for writer in found if writer.table in tables]), ours

    def row_breakpoint(self) -> SqlRowBreakpoint:
        """Count its rows from now on."""
        try:
            return self.breakpoint(self.own, self.target)
        except self.own.error as failure:
            saw = f"asked to count the rows of {self.target}; saw {self.own.words(failure)}"
            cure = "Make the table in the scenario's `setup`, or mend its name in `sink`"
            raise SetupError(f"{saw}. {cure}") from failure

    @abstractmethod
    def tried(self, table: SinkTable, *, after: int | None) -> SinkTable:
        """Return the same table with `folds` and `folding` filled in."""

    @abstractmethod
    def snapshot(self, request: str, *, wait_ms: int = 0) -> AbstractContextManager[Any]:
        """Return a connection in a read-only transaction with one snapshot. Failures become words, without the
        password. `wait_ms` is how long it waits for a lock, and a tenth of what a statement may take; 0: the usual
        limit of a statement for both."""

    @abstractmethod
    def _columns(self, connection: Any) -> tuple[SinkColumn, ...]:
        """Return its columns. Raises UsageError for one that cannot be compared."""

    @abstractmethod
    def _cells(self, connection: Any, columns: Sequence[SinkColumn]) -> AbstractContextManager[Any]:
        """Return a cursor over its rows, each value as the text that is it exactly; not all are in memory at once."""

    @abstractmethod
    def _digest(self, connection: Any) -> Any:
        """Return the query for the count of its rows and the sum of their hashes."""

    @abstractmethod
    def _is_unique(self, connection: Any) -> bool:
        """Return whether a unique index of the table covers only columns of the key. Called while rows are read."""

    @abstractmethod
    def _writers(self, connection: Any) -> Mapping[Writer, bool]:
        """Return who has written into any table and not committed; true where it is a table of the run's part."""

    @abstractmethod
    def _read_by(self, connection: Any) -> set[int] | None:
        """Return the tables that it reads: those that we hold a lock on once we have read nothing of it. None if that
        is not known, as when a writer locks even readers out."""


def short(text: str) -> str:
    """In one line, and not too long."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:77]}..."
