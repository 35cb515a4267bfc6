"""Reads the current snapshot of an Iceberg table in a Hadoop catalog, by pyiceberg.

The newest `vN.metadata.json` is the table: a commit is a rename to the next number, and the hint beside it may be late.
A data file that no snapshot names is no row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError, NotInstalledError, ValidationError
from pyiceberg.table import StaticTable

from harness.errors import UsageError
from harness.run_folder.database import connection
from harness.sinks import arrow
from harness.sinks.base import Missing, Reading
from harness.sinks.table import SinkColumn

METADATA = "metadata"
NUMBERED = re.compile(r"v([0-9]+)(\.gz)?\.metadata\.json")
FORMAT_MAX = 2
"""The format version of which tests say that it is read right: 3 has deletion vectors and more types."""
FAILURES = (ValidationError, NoSuchTableError, NotInstalledError, NotImplementedError, ArithmeticError, EOFError,
            LookupError, TypeError, ValueError)  # fmt: skip
"""What pyiceberg raises of a table that is damaged, or that it does not know how to read."""


@contextmanager
def reading(folder: Path) -> Iterator[Reading]:
    """Columns and canonical rows of the current snapshot. Raises Missing if there is no table, UsageError if it holds
    what cannot be compared, StackError if it cannot be read."""
    table, named = opened(folder), _named(folder)
    with named.said():
        rows = table.scan().to_arrow_batch_reader()
    with named.reading(rows, version_of(table)) as found:
        yield found


def columns(folder: Path) -> tuple[SinkColumn, ...]:
    """The columns of the current snapshot. Raises as `reading` does."""
    table, named = opened(folder), _named(folder)
    with closing(connection()) as db:
        with named.said():
            rows = pa.RecordBatchReader.from_batches(table.schema().as_arrow(), iter(()))
        return named.columns(db, rows)


def mark(folder: Path) -> str:
    """A fingerprint that changes when the rows do. A table that is not there yet has one too."""
    try:
        return version_of(opened(folder))
    except Missing:
        return "no such table"


def version_of(table: StaticTable) -> str:
    """Which snapshot of which table."""
    snapshot = table.metadata.current_snapshot_id
    return f"snapshot {snapshot if snapshot is not None else 'none'} of {table.metadata.table_uuid}"


def opened(folder: Path) -> StaticTable:
    """As it stands. Raises Missing, StackError; UsageError for a table that may not be read right."""
    named = _named(folder)
    asked = f"asked to read {named.what}"
    numbers = {int(found[1]): found[0] for found in map(NUMBERED.fullmatch, _names(folder / METADATA)) if found}
    if not numbers:
        raise Missing(f"{asked}; there is none in {folder.parent}. Mend its name in `sink`, or in the program")
    with named.said():
        table = StaticTable.from_metadata(str(folder / METADATA / numbers[max(numbers)]))
    if table.metadata.format_version > FORMAT_MAX:
        saw = f"it has format version {table.metadata.format_version}"
        raise UsageError(f"{asked}; {saw}, which is not known to be read right. Make the table without it")
    return table


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _named(folder: Path) -> arrow.Table:
    return arrow.Table(f"the Iceberg table {folder.name}", FAILURES)
