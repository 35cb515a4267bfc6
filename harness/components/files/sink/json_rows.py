"""Reads files of JSON, an object a line, whole and exactly; the scenario names the columns and their types.

A line that is no object, or a value that its column does not keep in full, is refused by file and line. So is a last
line without a line break: Spark ends each of its lines, and a cut one may still be a number.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from harness.checkers.cells import Cell, Row
from harness.components.files.sink.listing import DataFile
from harness.errors import UsageError
from harness.sinks.base import Missing, Reading
from harness.sinks.json_columns import Wanted
from harness.sinks.json_values import Number, fields, of_json, utf8
from harness.sinks.table import SinkColumn

ROWS = 20_000
BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class JsonLines:
    """With these columns."""

    wanted: tuple[Wanted, ...]

    @contextmanager
    def reading(self, name: str, files: Sequence[DataFile], version: str) -> Iterator[Reading]:
        """Columns and canonical rows. Raises Missing where there is no file, UsageError for what cannot be read."""
        columns = self.columns(name, files)
        rows = (row for file in files for row in self._rows(name, file))
        yield Reading(columns, iter(lambda: list(islice(rows, ROWS)), []), lambda: False, version)

    def columns(self, name: str, files: Sequence[DataFile]) -> tuple[SinkColumn, ...]:
        """As the scenario has them. Raises Missing where there is no file."""
        if not files:
            raise Missing(f"asked to read the files of {name}; there is none yet")
        return tuple(SinkColumn(name=each.name, type=each.full, family=each.family) for each in self.wanted)

    def _rows(self, name: str, file: DataFile) -> Iterator[Row]:
        number, folder = 0, dict(file.partition)
        try:
            with gzip.open(file.path) if file.path.suffix == ".gz" else file.path.open("rb") as lines:
                for line in lines:
                    number += 1
                    if not line.endswith(b"\n"):
                        raise ValueError("has no end: the file is torn")
                    yield self._row(fields(utf8(line)), folder)
        except (OSError, EOFError, zlib.error, ValueError) as failure:
            where = f"line {number} of {file.place}" if isinstance(failure, ValueError) else file.place
            saw = f"{where} cannot be read exactly: {failure}"
            raise UsageError(f"asked to read the files of {name}; {saw}") from failure

    def _row(self, found: dict[str, Any], folder: dict[str, str | None]) -> Row:
        return tuple(self._cell(found, folder, column) for column in self.wanted)

    def _cell(self, found: dict[str, Any], folder: dict[str, str | None], column: Wanted) -> Cell:
        if column.source in folder and column.source in found:
            raise ValueError(f"has {column.source}, as its folder's name has")
        value = _named(folder[column.source], column) if column.source in folder else found.get(column.source)
        try:
            return of_json(value, column)
        except ValueError as refused:
            raise ValueError(f"column {column.name}: {refused}") from None


def _named(text: str | None, column: Wanted) -> Any:
    """Return what a folder's name says, as a line would say it."""
    if text is None or column.family in ("text", "bytes", "date", "timestamp", "instant"):
        return text
    return BOOLEANS.get(text, text) if column.family == "bool" else Number(text)
