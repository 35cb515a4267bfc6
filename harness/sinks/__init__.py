"""Reading back what the sinks hold, and keeping it in the run folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from harness.checkers.cells import Row
from harness.errors import UsageError
from harness.scenario import Sink
from harness.sinks import postgres
from harness.sinks.folding import since, tried
from harness.sinks.table import FINGERPRINTS, SinkColumn, SinkTable, fingerprint, load, save, save_parts

__all__ = ["SinkColumn", "SinkTable", "busy", "columns", "keep", "load", "mark", "read", "save", "since", "tried"]

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
        return replace(about, unreadable=str(failure), absent=isinstance(failure, postgres.Missing))
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


def keep(folder: Path, index: int, sink: Sink, dsns: Mapping[str, str], *, rows_max: int, wait_ms: int) -> int:
    """Read a sink as it stands and write it into `folder` as `save` does, in bounded memory: beyond `rows_max` rows
    only their fingerprints. Returns how many rows there are. One that cannot be read, also because a lock kept readers
    out for `wait_ms`, is kept as unreadable. Raises HarnessError if the database or the disk does not answer."""
    about = SinkTable(name=sink.name, backend=sink.backend, target=sink.target)
    if sink.backend == "console":
        save(folder, index, replace(about, unreadable=CONSOLE))
        return 0
    try:
        with postgres.stream(_dsn(sink, dsns), sink.target, wait_ms=wait_ms) as (columns, parts):
            about = replace(about, columns=columns)
            held: list[Row] = []
            for part in parts:
                held += part
                if len(held) > rows_max:
                    return _keep_prints(folder, index, about, sink.key, chain([held], parts))
        save(folder, index, replace(about, rows=held))
        return len(held)
    except UsageError as failure:
        absent = isinstance(failure, postgres.Missing)
        save(folder, index, replace(about, columns=(), unreadable=str(failure), absent=absent))
        return 0


def _keep_prints(folder: Path, index: int, about: SinkTable, key: tuple[str, ...], parts: Iterator[list[Row]]) -> int:
    places = [at for at, column in enumerate(about.columns) if column.name in key]
    columns = (*(about.columns[at] for at in places), SinkColumn(name="fingerprint", type="text", family="text"))
    prints = ([(*(row[at] for at in places), fingerprint(row)) for row in part] for part in parts)
    return save_parts(folder, index, replace(about, columns=columns, form=FINGERPRINTS), prints)


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
