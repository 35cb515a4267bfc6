"""Rows that a library gives as Arrow batches, as canonical cells: by DuckDB, with the casts that `expected` has.

Values go to text in Arrow's own types, so nothing is rounded on the way. A type that has no exact and comparable text
is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from harness.checkers.cells import Row, canonical_rows
from harness.errors import StackError, UsageError, one_line
from harness.ledger.families import as_text, family_of
from harness.run_folder.database import connection
from harness.sinks.base import Reading
from harness.sinks.table import SinkColumn

FETCH_ROWS = 20_000
NAME = "arrow_rows"


@dataclass(frozen=True)
class Table:
    """`what` names it in words (`the Delta table payments`), `failures` are what its library raises."""

    what: str
    failures: tuple[type[Exception], ...]

    @contextmanager
    def reading(self, rows: pa.RecordBatchReader, version: str) -> Iterator[Reading]:
        """Columns and canonical rows, in parts of at most `FETCH_ROWS`. Such a table knows no unique key.

        Raises UsageError if it holds what cannot be compared, StackError if it cannot be read."""
        with closing(connection()) as db:
            columns = self.columns(db, rows)
            cells = ", ".join(as_text(f"c{at}", column.family) for at, column in enumerate(columns))
            with self.stack_errors():
                db.execute(f"select {cells} from {NAME}")
            parts = self._parts(db, [column.family for column in columns])
            yield Reading(columns, parts, lambda: False, version)

    def fingerprint(self, rows: pa.RecordBatchReader) -> str:
        """Return one text for the same columns and rows, in whatever order they come. Raises as `reading` does."""
        with closing(connection()) as db:
            columns = self.columns(db, rows)
            cells = ", ".join(as_text(f"c{at}", column.family) for at, column in enumerate(columns))
            with self.stack_errors():
                found = db.execute(f"select count(*), sum(hash({cells})::hugeint) from {NAME}").fetchone()
            count, total = found or (0, None)
            names = " ".join(f"{column.name!r} {column.type}" for column in columns)
            return f"{count} rows, {total}, of {names}"

    def _parts(self, db: Any, families: list[str]) -> Iterator[list[Row]]:
        while True:
            with self.stack_errors():
                part = db.fetchmany(FETCH_ROWS)
            if not part:
                return
            try:
                yield canonical_rows(part, families)
            except ValueError as failure:
                raise UsageError(f"{self.what} holds what cannot be compared: {failure}") from failure

    def columns(self, db: Any, rows: pa.RecordBatchReader) -> tuple[SinkColumn, ...]:
        """Return its columns; `rows` are `NAME` in `db` afterwards, with columns called c0, c1, c2 …"""
        with self.stack_errors():
            names = rows.schema.names
            # By place: DuckDB takes names that differ in case for one.
            db.register(NAME, _renamed(rows))
            types = [str(row[1]) for row in db.execute(f"describe {NAME}").fetchall()]
        out = []
        for name, type_ in zip(names, types, strict=True):
            family = family_of(type_)
            if family is None:
                words = f"{self.what} has a column {name} of type {type_}, which cannot be compared exactly"
                raise UsageError(f"{words}. Write it as a plain type, and cast it in `expected` alike")
            out.append(SinkColumn(name=name, type=type_, family=family))
        return tuple(out)

    def not_known(self, saw: str) -> UsageError:
        """It has something of which no test says that it is read right."""
        return UsageError(
            f"asked to read {self.what}; it has {saw}, which is not known to be read right. Make the table without it"
        )

    @contextmanager
    def stack_errors(self) -> Iterator[None]:
        """Turn failures into a StackError with their words."""
        try:
            yield
        except (*self.failures, OSError, duckdb.Error, pa.ArrowException) as failure:
            raise StackError(f"asked to read {self.what}; saw {one_line(failure)}") from failure


def _renamed(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    schema = pa.schema([field.with_name(f"c{at}") for at, field in enumerate(rows.schema)])
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
    return pa.RecordBatchReader.from_batches(schema, batches)
