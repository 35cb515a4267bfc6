"""The sink `postgres`: a table or a query, in a database that the run was given.

open_table        one of them, in a run
column_types      what its columns keep, modifiers and all
hides_duplicates  tries whether a query hides a doubled row
row_breakpoint    counts its rows, and holds their writer
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from harness.components.postgres.sink.start import START
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About
from harness.sinks.any_table import AnySqlTable

if TYPE_CHECKING:
    from harness.sinks.sql.table import SqlTable


def by_query(name: str, query: str) -> str:
    """Return how a table of another name is read."""
    plain = name.lower()
    folded = f": made without quotes it is {plain}; made with them," if v.TABLE.fullmatch(plain) else ":"
    deduplicated = ", and add `view: deduplicated`: with a schema in it, no query is tried" if "." in name else ""
    return f"{folded} read it by a query: {query}{deduplicated}"


class Place(Shape):
    """Which table or query."""

    postgres: Annotated[str, v.table_or_query('"', by_query), Field(description="a table or a query")]


class Postgres(AnySqlTable):
    """Read by its client."""

    def _table(self) -> type[SqlTable]:
        # Scenario files are read without a client of any server.
        from harness.components.postgres.sink.open_table import OpenTable

        return OpenTable


KIND = Postgres(
    about=About(
        name="postgres",
        summary="a table or a query in Postgres",
        example="{postgres: payments, expected: select id from ledger, key: [id]}",
        options=Place,
    ),
    start=START,
)
