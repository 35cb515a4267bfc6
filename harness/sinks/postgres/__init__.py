"""The sink `postgres`: a table or a query, in the database that the run was given, or in the second one.

rows       reads it whole and exactly, fingerprints it, says who is at work
column_types  what its columns keep, modifiers and all
folding    tries whether a query hides a doubled row
writers    who has written into it and not committed
tripwire   counts its rows, and holds their writer
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import psycopg2
from pydantic import Field

from harness.errors import SetupError, UsageError
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusals
from harness.scenario import Sink
from harness.sinks.base import Reading, Writer
from harness.sinks.postgres import folding, rows, writers
from harness.sinks.postgres.tripwire import Tripwire
from harness.sinks.table import SinkColumn, SinkTable


class Database(StrEnum):
    """The databases of a stack."""

    MAIN = "main"
    SECOND = "second"


class Place(Shape):
    """Which table or query, and in which database."""

    postgres: Annotated[v.TableOrQuery, Field(description="a table or a query")]
    database: Annotated[Database, v.choice(Database)] = Database.MAIN


@dataclass(frozen=True)
class OpenTable:
    """One table or query of a run. `server` names its database."""

    dsn: str
    target: str
    key: tuple[str, ...]
    server: str
    shared: bool

    def columns(self) -> tuple[SinkColumn, ...]:
        """Its columns, without the rows."""
        return rows.columns(self.dsn, self.target)

    def reading(self, *, wait_ms: int = 0) -> AbstractContextManager[Reading]:
        """Its columns and rows, of one moment."""
        return rows.reading(self.dsn, self.target, key=self.key, wait_ms=wait_ms)

    def mark(self) -> str:
        """A fingerprint that changes when its rows do."""
        return rows.mark(self.dsn, self.target)

    def busy(self) -> str:
        """The statement that the server still works on for a pipeline."""
        return rows.busy(self.dsn, shared=self.shared)

    def now(self) -> int | None:
        """A transaction that is younger than all there were."""
        return folding.now(self.dsn)

    def tried(self, table: SinkTable, *, after: int | None) -> SinkTable:
        """With `folds` and `folding` filled in."""
        return folding.tried(self.dsn, self.target, table, after=after)

    def writing(self, *, wait_ms: int) -> tuple[list[Writer], list[Writer]]:
        """Who has written into it and not committed, and who into any table of the run."""
        return writers.writing(self.dsn, self.target, wait_ms=wait_ms)

    def tripwire(self, schema: str) -> Tripwire:
        """Count its rows from now on."""
        try:
            return Tripwire(self.dsn, schema, self.target)
        except psycopg2.Error as failure:
            saw = f"asked to count the rows of {self.target}; saw {str(failure).strip()}"
            raise SetupError(f"{saw}. Make the table in the scenario's `setup`") from failure


class Postgres:
    """Read by the harness itself, in one read-only transaction."""

    about = About(
        name="postgres",
        summary="a table or a query in Postgres",
        example="{postgres: payments, effect: select id from ledger, key: [id]}",
        options=Place,
    )
    unread = ""

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """Any table or query may be there."""
        return iter(())

    def open(self, sink: Sink, own: Mapping[str, Any], *, shared: bool = False) -> OpenTable:
        """Raises UsageError for a database that the run was not given."""
        server = str(sink.options.get("database", Database.MAIN))
        if server not in own:
            there = ", ".join(own) or "none"
            raise UsageError(f"the sink {sink.name} is in the database {server!r}; there are: {there}")
        return OpenTable(own[server], sink.target, sink.key, server, shared)

    def query(self, target: str) -> str | None:
        """The target, if it is a query."""
        return target if v.QUERY.match(target) else None

    def countable(self, target: str) -> bool:
        """Is it a table in the run's own schema, named as such?"""
        return bool(re.fullmatch(v.IDENTIFIER, target))


KIND = Postgres()
