"""The sink `postgres`: a table or a query, in the database that the run was given, or in the second one.

open_table   one of them, in a run
rows         reads it whole and exactly, fingerprints it, says who is at work
column_types  what its columns keep, modifiers and all
folding      tries whether a query hides a doubled row
writers      who has written into it and not committed
tripwire     counts its rows, and holds their writer
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusals
from harness.scenario import Sink
from harness.sinks.base import NotGiven, OpenSink


class Database(StrEnum):
    """The databases of a stack."""

    MAIN = "main"
    SECOND = "second"


class Place(Shape):
    """Which table or query, and in which database."""

    postgres: Annotated[v.TableOrQuery, Field(description="a table or a query")]
    database: Annotated[Database, v.choice(Database)] = Database.MAIN


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

    def open(self, sink: Sink, own: Mapping[str, Any], *, shared: bool = False) -> OpenSink:
        """Raises NotGiven for a database that the run was not given."""
        server = str(sink.options.get("database", Database.MAIN))
        if server not in own:
            there = ", ".join(own) or "none"
            raise NotGiven(f"the sink {sink.name} is in the database {server!r}; there are: {there}")
        # Scenario files are read without a client of any server.
        from harness.components.postgres.sink.open_table import OpenTable

        return OpenTable(own[server], sink.target, sink.key, f"{self.about.name} {server}", shared)

    def query(self, target: str) -> str | None:
        """The target, if it is a query."""
        return target if v.QUERY.match(target) else None

    def countable(self, target: str) -> bool:
        """Is it a table in the run's own schema, named as such?"""
        return bool(re.fullmatch(v.IDENTIFIER, target))


KIND = Postgres()
