"""A pytest plug-in for mutation runs: DuckDB is asked the same of the same tables once, whichever test or mutant asks.

`-p tests.recalled` puts `Recalled` in the place of connections to DuckDB. An answer is known by all that was done on
the connection before it, the content of its tables included. No code of ours is left out: what is remembered are rows
as DuckDB gave them. The processes of the mutants inherit what the tests were told when nothing was mutated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import harness.ledger
import harness.run_folder.ledger
from harness.run_folder.database import connection

Answer = tuple[list[Any], list[str]] | Exception
_ANSWERS: dict[Any, Answer] = {}
_VIEW = "create or replace temp view "
_LASTING = "create "
MODULES = (harness.ledger, harness.run_folder.ledger)
"""Who asks by a `connection` of that name."""


class Rows:
    """A result that has been fetched."""

    def __init__(self, rows: Sequence[Any], columns: Sequence[str]) -> None:
        self._rows = iter(rows)
        self.columns = columns

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchmany(self, size: int) -> list[Any]:
        return list(islice(self._rows, size))


class Recalled:
    """A connection that is made when it is asked something new. Of its views only the last one is there."""

    def __init__(self) -> None:
        self._steps: tuple[Any, ...] = ()
        self._tables: dict[str, pa.Table] = {}
        self._view = self._shown = ""
        self._made: duckdb.DuckDBPyConnection | None = None
        self._taken = 0

    def __enter__(self) -> Recalled:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def register(self, name: str, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        self._tables[name] = table
        self._steps += ((name, hashlib.sha256(sink.getvalue()).hexdigest()),)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        question = (self._steps, self._view, sql, tuple(parameters))
        if new := question not in _ANSWERS:
            _ANSWERS[question] = self._asked(sql, parameters)
        answer = _ANSWERS[question]
        if isinstance(answer, Exception):
            raise answer
        if sql.startswith(_VIEW):
            self._view = sql
            self._shown = sql if new else self._shown
        elif sql.strip().startswith(_LASTING) and sql not in self._steps:
            self._steps += (sql,)
            self._taken += new
        return Rows(*answer)

    sql = execute

    def interrupt(self) -> None:
        if self._made is not None:
            self._made.interrupt()

    def close(self) -> None:
        if self._made is not None:
            self._made.close()

    def _asked(self, sql: str, parameters: Sequence[Any]) -> Answer:
        made = self._made = self._made or connection()
        for step in self._steps[self._taken :]:
            if isinstance(step, str):
                made.execute(step)
            else:
                made.register(step[0], self._tables[step[0]])
        self._taken = len(self._steps)
        if self._view != self._shown:
            made.execute(self._view)
            self._shown = self._view
        try:
            found = made.execute(sql, parameters)
            return found.fetchall(), [each[0] for each in found.description or ()]
        except Exception as error:  # what DuckDB does not like is an answer too
            return error


def installed(patch: pytest.MonkeyPatch) -> None:
    """Whoever asks gets one that recalls. Raises AttributeError where nobody asks by that name any more."""
    for module in MODULES:
        patch.setattr(module, "connection", Recalled)


def pytest_configure() -> None:
    """Before any test is collected."""
    installed(pytest.MonkeyPatch())
