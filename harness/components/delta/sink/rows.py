"""Reads the newest version of a Delta table, by deltalake.

The log says which data files a version has; a file that no version names is no row. A table feature that is not known
to be read right is refused by name.

Spark writes a `timestamp` into Parquet as nanoseconds beside a day (INT96). Arrow reads that as microseconds here.
deltalake's own engine makes nanoseconds of it, which wrap around before 1678 and after 2261; but it alone knows some
features.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from harness.sinks import arrow
from harness.sinks.base import Missing

LOG = "_delta_log"
READ_RIGHT = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint"})
"""The features that a reader has to know of which tests say that they are read right."""
BY_ITS_ENGINE = frozenset({"columnMapping", "deletionVectors", "v2Checkpoint"})
MAPPED_READER = 2
"""The protocol that means mapped columns without naming the feature."""
READER_MAX = 3
"""The reader protocol in which a table names its features; a higher one is not known."""


def version_of(table: DeltaTable) -> str:
    """Return which version of which table: one that was made again begins at version 0."""
    return f"version {table.version()} of {table.metadata().id}"


def opened(folder: Path) -> DeltaTable:
    """Return the newest version. Raises Missing, StackError; UsageError for a table that may not be read right."""
    words = named(folder)
    request = f"asked to read {words.what}"
    if not (folder / LOG).is_dir():
        raise Missing(
            f"{request}; there is none in {folder.parent}. Mend its name in `sink`, or the path in the program"
        )
    with words.stack_errors():
        try:
            table = DeltaTable(folder)
        except TableNotFoundError as failure:
            raise Missing(f"{request}; no version of it is there yet") from failure
        protocol = table.protocol()
        instants = [field.name for field in table.schema().fields if '"timestamp"' in field.type.to_json()]
    strange = sorted({*(protocol.reader_features or ())} - READ_RIGHT)
    saw = ", ".join(strange) or f"reader version {protocol.min_reader_version}"
    if instants and (engine := _engine(table)) and not strange:
        saw = f"{engine} and the column {instants[0]} of type timestamp"
    elif not strange and protocol.min_reader_version <= READER_MAX:
        return table
    raise words.not_known(saw)


def _engine(table: DeltaTable) -> str:
    """Return what makes deltalake's own engine needed, in words; empty if nothing does."""
    protocol = table.protocol()
    found = sorted(BY_ITS_ENGINE.intersection(protocol.reader_features or ()))
    return ", ".join(found) or ("columnMapping" if protocol.min_reader_version == MAPPED_READER else "")


def schema(table: DeltaTable) -> pa.Schema:
    """Return its columns, as they are scanned."""
    return scanned(table).schema


def scanned(table: DeltaTable) -> pa.RecordBatchReader:
    """Return its rows; where Arrow reads them, one data file after the other: a scan of them all reads ahead of who
    asks."""
    if _engine(table):
        rows = QueryBuilder().register("delta", table).execute("select * from delta")
        return pa.RecordBatchReader.from_stream(rows)
    read = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    files = table.to_pyarrow_dataset(parquet_read_options=read)
    batches = (
        batch
        for file in files.get_fragments()
        for batch in file.to_batches(files.schema, batch_size=arrow.FETCH_ROWS, batch_readahead=1)
    )
    return pa.RecordBatchReader.from_batches(files.schema, batches)


def named(folder: Path) -> arrow.Table:
    """Return what it is called in words, and what deltalake raises."""
    return arrow.Table(f"the Delta table {folder.name}", (DeltaError,))
