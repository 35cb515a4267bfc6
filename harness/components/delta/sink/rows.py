"""Reads the newest version of a Delta table whole and exactly, by deltalake and DuckDB.

The log says which data files a version has; a file that no version names is no row. Values go from Parquet to text in
Arrow's own types and by the same casts as the effect's, so nothing is rounded on the way. A table feature that is not
known to be read right, or a type that has no exact and comparable text, is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from harness.checkers.cells import Row, canonical_rows
from harness.effect import FAMILY_OF, as_text
from harness.errors import StackError, UsageError
from harness.run_folder.database import connection
from harness.sinks.base import Missing, Reading
from harness.sinks.table import SinkColumn

FETCH_ROWS = 20_000
LOG = "_delta_log"
NAME = "delta_table"
READ_RIGHT = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint"})
"""The features that a reader has to know of which tests say that they are read right."""
OLD_READER, FEATURES_READER = 2, 3
"""The protocol up to which a reader needs to know no feature by name, and that which names them."""
READER_FAILURES = (DeltaError, OSError, duckdb.Error, pa.ArrowException)


@contextmanager
def reading(folder: Path) -> Iterator[Reading]:
    """Columns and canonical rows, in parts of at most `FETCH_ROWS`, of the newest version.

    Raises Missing if no version is there, UsageError if it holds what cannot be compared, StackError if it cannot be
    read."""
    table = opened(folder)
    with closing(connection()) as db:
        columns = _columns(db, table, folder)
        cells = ", ".join(as_text(f"c{at}", column.family) for at, column in enumerate(columns))
        with _said(folder):
            db.execute(f"select {cells} from {NAME}")
        parts = _parts(db, [column.family for column in columns], folder)
        # A Delta table knows no unique key.
        yield Reading(columns, parts, lambda: False, version_of(table))


def _parts(db: Any, families: list[str], folder: Path) -> Iterator[list[Row]]:
    while True:
        with _said(folder):
            part = db.fetchmany(FETCH_ROWS)
        if not part:
            return
        try:
            yield canonical_rows(part, families)
        except ValueError as failure:
            raise UsageError(f"the Delta table {folder.name} holds what cannot be compared: {failure}") from failure


def columns(folder: Path) -> tuple[SinkColumn, ...]:
    """The columns of the newest version. Raises as `reading` does."""
    with closing(connection()) as db:
        return _columns(db, opened(folder), folder)


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
    asked = f"asked to read the Delta table {folder.name}"
    if not (folder / LOG).is_dir():
        raise Missing(f"{asked}; there is none in {folder.parent}. Mend its name in `sink`, or the path in the program")
    with _said(folder):
        try:
            table = DeltaTable(folder)
        except TableNotFoundError as failure:
            raise Missing(f"{asked}; no version of it is there yet") from failure
        protocol = table.protocol()
    strange = sorted({*(protocol.reader_features or ())} - READ_RIGHT)
    if strange or protocol.min_reader_version > FEATURES_READER:
        saw = f"it has {', '.join(strange) or f'reader version {protocol.min_reader_version}'}"
        raise UsageError(f"{asked}; {saw}, which is not known to be read right. Make the table without it")
    return table


def _columns(db: Any, table: DeltaTable, folder: Path) -> tuple[SinkColumn, ...]:
    with _said(folder):
        rows = pa.RecordBatchReader.from_stream(table.scan())
        names = rows.schema.names
        # By place: DuckDB takes names that differ in case for one.
        placed = pa.schema([field.with_name(f"c{at}") for at, field in enumerate(rows.schema)])
        db.register(NAME, _renamed(rows, placed))
        types = [str(row[1]) for row in db.execute(f"describe {NAME}").fetchall()]
    out = []
    for name, type_ in zip(names, types, strict=True):
        family = FAMILY_OF.get(type_.split("(")[0])
        if family is None or type_.endswith("]"):
            asked = f"the Delta table {folder.name} has a column {name} of type {type_}, which cannot be compared"
            raise UsageError(f"{asked} exactly. Write it as a plain type, and cast it in the effect alike")
        out.append(SinkColumn(name=name, type=type_, family=family))
    return tuple(out)


def _renamed(rows: Any, schema: pa.Schema) -> Any:
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
    return pa.RecordBatchReader.from_batches(schema, batches)


@contextmanager
def _said(folder: Path) -> Iterator[None]:
    """Failures become words."""
    try:
        yield
    except READER_FAILURES as failure:
        words = " ".join(str(failure).split()) or type(failure).__name__
        raise StackError(f"asked to read the Delta table {folder.name}; saw {words}") from failure
