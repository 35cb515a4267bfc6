"""The sink `mariadb`: a table or a query, in a database that the run was given.

open_table      one of them, in a run
column_types    what its columns keep, by the server's description of a result
row_breakpoint  counts its rows, and holds their writer
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from harness.components.mariadb.sink.start import START
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About
from harness.sinks.any_table import AnySqlTable

if TYPE_CHECKING:
    from harness.sinks.sql.table import SqlTable


def by_query(name: str, query: str) -> str:
    """Return how a table of another name is read."""
    return f": read it by a query: {query}, and add `view: deduplicated`, since what a query folds is not tried here"


class Place(Shape):
    """Which table or query."""

    mariadb: Annotated[str, v.table_or_query("`", by_query), Field(description="a table or a query")]


class MariaDB(AnySqlTable):
    """Read by its client."""

    def _table(self) -> type[SqlTable]:
        # Scenario files are read without a client of any server.
        from harness.components.mariadb.sink.open_table import OpenTable

        return OpenTable


KIND = MariaDB(
    about=About(
        name="mariadb",
        summary="a table or a query in MariaDB",
        example="{mariadb: payments, expected: select id from ledger, key: [id]}",
        options=Place,
    ),
    start=START,
)
