"""Reads the newest version of a Delta table, by deltalake.

The log says which data files a version has; a file that no version names is no row. A table feature that is not known
to be read right is refused by name.

Spark writes a `timestamp` into Parquet as nanoseconds beside a day (INT96). Arrow is told to read that as microseconds.
deltalake's own engine makes nanoseconds of it, which wrap around before 1678 and after 2261; but it alone knows some
features.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from harness.errors import UsageError
from harness.run_folder.database import connection
from harness.sinks import arrow
from harness.sinks.base import Missing, Reading
from harness.sinks.table import SinkColumn

LOG = "_delta_log"
READ_RIGHT = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint"})
"""The features that a reader has to know of which tests say that they are read right."""
BY_ITS_ENGINE = frozenset({"columnMapping", "deletionVectors", "v2Checkpoint"})
MAPPED_READER = 2
"""The protocol that means mapped columns without naming the feature."""
READER_MAX = 3
"""The protocol of a reader that is told features by name; a higher one is not known."""


@contextmanager
def reading(folder: Path) -> Iterator[Reading]:
    """Columns and canonical rows of the newest version. Raises Missing if none is there, UsageError if it holds what
    cannot be compared, StackError if it cannot be read."""
    table, named = opened(folder), _named(folder)
    with named.said():
        rows = _rows(table)
    with named.reading(rows, version_of(table)) as found:
        yield found


def columns(folder: Path) -> tuple[SinkColumn, ...]:
    """The columns of the newest version. Raises as `reading` does."""
    table, named = opened(folder), _named(folder)
    with named.said(), closing(connection()) as db:
        return named.columns(db, _rows(table))


def mark(folder: Path) -> str:
    """A fingerprint that changes when the rows do. A table that is not there yet has one too."""
    try:
        return version_of(opened(folder))
    except Missing:
        return "no such table"


def version_of(table: DeltaTable) -> str:
    """Which version of which table: one that was made anew begins at version 0 again."""
    return f"version {table.version()} of {table.metadata().id}"


def opened(folder: Path) -> DeltaTable:
    """The newest version. Raises Missing, StackError; UsageError for a table that may not be read right."""
    named = _named(folder)
    asked = f"asked to read {named.what}"
    if not (folder / LOG).is_dir():
        raise Missing(f"{asked}; there is none in {folder.parent}. Mend its name in `sink`, or the path in the program")
    with named.said():
        try:
            table = DeltaTable(folder)
        except TableNotFoundError as failure:
            raise Missing(f"{asked}; no version of it is there yet") from failure
        protocol = table.protocol()
        instants = [field.name for field in table.schema().fields if '"timestamp"' in field.type.to_json()]
    strange = sorted({*(protocol.reader_features or ())} - READ_RIGHT)
    saw = ", ".join(strange) or f"reader version {protocol.min_reader_version}"
    if instants and (engine := _engine(table)) and not strange:
        saw = f"{engine} and the column {instants[0]} of type timestamp"
    elif not strange and protocol.min_reader_version <= READER_MAX:
        return table
    raise UsageError(f"{asked}; it has {saw}, which is not known to be read right. Make the table without it")


def _engine(table: DeltaTable) -> str:
    """What makes deltalake's own engine needed, in words; empty if nothing does."""
    protocol = table.protocol()
    found = sorted(BY_ITS_ENGINE.intersection(protocol.reader_features or ()))
    return ", ".join(found) or ("columnMapping" if protocol.min_reader_version == MAPPED_READER else "")


def _rows(table: DeltaTable) -> pa.RecordBatchReader:
    if _engine(table):
        return pa.RecordBatchReader.from_stream(table.scan())
    read = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    scanner = table.to_pyarrow_dataset(parquet_read_options=read).scanner(
        batch_size=arrow.FETCH_ROWS, batch_readahead=1, fragment_readahead=1
    )
    return scanner.to_reader()


def _named(folder: Path) -> arrow.Table:
    return arrow.Table(f"the Delta table {folder.name}", (DeltaError,))
