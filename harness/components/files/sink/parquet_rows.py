"""Reads Parquet files whole and exactly, by pyarrow and DuckDB.

All of them have the same columns: one that differs is refused by its name, as is one that is torn. Spark's INT96 is a
moment in time, and is read as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from harness.components.files.sink.listing import DataFile
from harness.errors import StackError, UsageError, one_line
from harness.run_folder.database import connection
from harness.sinks import arrow
from harness.sinks.base import Missing, Reading
from harness.sinks.table import SinkColumn

ROWS = 20_000
INT96 = "INT96"
MOMENT = pa.timestamp("us", "UTC")
"""What DuckDB knows of a moment in time. A finer one is refused, and not cut."""


class Parquet:
    """A file says of which types its columns are."""

    @contextmanager
    def reading(self, name: str, files: Sequence[DataFile], version: str) -> Iterator[Reading]:
        """Columns and canonical rows. Raises Missing where there is no file, UsageError for what cannot be compared or
        read."""
        if not files:
            raise Missing(f"asked to read the files of {name}; there is none yet")
        schemas = [_schema(name, file) for file in files]
        for file, schema in zip(files, schemas, strict=True):
            if not schema.equals(schemas[0]):
                saw = f"has the columns {_shown(schema)}, and {files[0].place} has {_shown(schemas[0])}"
                raise UsageError(f"asked to read the files of {name}; {file.place} {saw}")
        batches = _Batches(name, files)
        rows = pa.RecordBatchReader.from_batches(schemas[0], iter(batches))
        try:
            with arrow.Table(f"the files of {name}", ()).reading(rows, version) as found:
                yield found
        except StackError as failure:
            # DuckDB passes on only the words of the failure, not its type.
            raise batches.failure or UsageError(str(failure)) from failure

    def columns(self, name: str, files: Sequence[DataFile]) -> tuple[SinkColumn, ...]:
        """Return those of a file that is whole: others may still be written. Raises Missing if there is none."""
        for file in files:
            try:
                schema = _schema(name, file)
            except UsageError:
                continue
            rows = pa.RecordBatchReader.from_batches(schema, iter(()))
            with closing(connection()) as db:
                return arrow.Table(f"the files of {name}", ()).columns(db, rows)
        raise Missing(f"asked to read the files of {name}; none that is whole is there yet")


@dataclass
class _Batches:
    """The rows of the files, one part at a time; `failure` is what ended them."""

    name: str
    files: Sequence[DataFile]
    failure: UsageError | None = field(default=None)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            try:
                schema = _schema(self.name, file)
                with _opened(file) as found:
                    for batch in found.iter_batches(ROWS, use_threads=False):
                        yield _placed(batch, file, schema)
            except UsageError as failure:
                self.failure = failure
                raise
            except (OSError, ValueError, pa.ArrowException) as failure:
                self.failure = _torn(self.name, file, failure)
                raise self.failure from failure


def _opened(file: DataFile) -> pq.ParquetFile:
    return pq.ParquetFile(file.path, coerce_int96_timestamp_unit="us", page_checksum_verification=True)


def _schema(name: str, file: DataFile) -> pa.Schema:
    """Return its columns with those of its folder. Raises UsageError if it is torn, or has a column that its folder
    has."""
    try:
        with _opened(file) as found:
            fields = list(found.schema_arrow)
            flat = {found.schema.column(at).path: found.schema.column(at) for at in range(len(found.schema))}
    except (OSError, ValueError, pa.ArrowException) as failure:
        raise _torn(name, file, failure) from failure
    moments = {path for path, column in flat.items() if column.physical_type == INT96}
    types = [MOMENT if each.name in moments or _is_moment(each.type) else each.type for each in fields]
    names = [each.name for each in fields]
    more = [column for column, _ in file.partition]
    if twice := {each for each in [*names, *more] if [*names, *more].count(each) > 1}:
        saw = f"{file.place} has the column {twice.pop()} twice, in the file or in its folder's name"
        raise UsageError(f"asked to read the files of {name}; {saw}")
    return pa.schema([*zip(names, types, strict=True), *((each, pa.string()) for each in more)])


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz)


def _placed(batch: pa.RecordBatch, file: DataFile, schema: pa.Schema) -> pa.RecordBatch:
    """With the columns that its folder names."""
    own = list(schema)[: batch.num_columns]
    cells = [each.cast(to.type) for each, to in zip(batch.columns, own, strict=True)]
    more = [pa.array([value] * batch.num_rows, pa.string()) for _, value in file.partition]
    return pa.RecordBatch.from_arrays([*cells, *more], schema=schema)


def _torn(name: str, file: DataFile, failure: Exception) -> UsageError:
    words = f"asked to read the files of {name}; {file.place} is torn, or cannot be read exactly"
    return UsageError(f"{words}: {one_line(failure)}")


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{each.name} {each.type}" for each in schema)
