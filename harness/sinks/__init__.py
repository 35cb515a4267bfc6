"""Reading back what the sinks hold, and keeping it in the run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.errors import UsageError
from harness.scenario import Sink
from harness.sinks import postgres
from harness.sinks.folding import since, tried
from harness.sinks.table import SinkColumn, SinkTable, load, save

__all__ = ["SinkColumn", "SinkTable", "busy", "columns", "load", "mark", "read", "save", "since", "tried"]

CONSOLE = "a console sink cannot be read back: point the pipeline at a table to have it judged"


def read(sink: Sink, dsns: Mapping[str, str]) -> SinkTable:
    """All rows of a sink; `dsns` has a libpq address for each database.

    A sink that is not there, or holds what cannot be compared, comes back `unreadable`, with the reason.
    Raises StackError if the database does not answer."""
    about = SinkTable(name=sink.name, backend=sink.backend, target=sink.target)
    if sink.backend == "console":
        return replace(about, unreadable=CONSOLE)
    try:
        found = postgres.read(_dsn(sink, dsns), sink.target, key=sink.key)
    except UsageError as failure:
        return replace(about, unreadable=str(failure))
    return replace(about, columns=found.columns, rows=found.rows, unique=found.unique)


def columns(sink: Sink, dsns: Mapping[str, str]) -> tuple[SinkColumn, ...] | None:
    """The columns of a sink without its rows; None if it is not there yet, or is a console.

    Raises StackError, or UsageError for a wrong query or a column that cannot be compared."""
    if sink.backend == "console":
        return None
    try:
        return postgres.columns(_dsn(sink, dsns), sink.target)
    except postgres.Missing:
        return None


def mark(sink: Sink, dsns: Mapping[str, str]) -> str:
    """A cheap fingerprint of a sink, to see whether it still changes. Raises StackError, or UsageError for a wrong
    query."""
    return "console" if sink.backend == "console" else postgres.mark(_dsn(sink, dsns), sink.target)


def busy(sink: Sink, dsns: Mapping[str, str], *, shared: bool = False) -> str:
    """The statement that the sink's server still works on for a pipeline, shortened; empty if none. `shared`: the
    database has other users, whose statements are their own. Raises StackError."""
    return "" if sink.backend == "console" else postgres.busy(_dsn(sink, dsns), shared=shared)


def _dsn(sink: Sink, dsns: Mapping[str, str]) -> str:
    try:
        return dsns[sink.database]
    except KeyError:
        there = ", ".join(dsns) or "none"
        raise UsageError(f"the sink {sink.name} is in the database {sink.database!r}; there are: {there}") from None
