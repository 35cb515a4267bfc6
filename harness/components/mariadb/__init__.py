"""MariaDB, a database server that speaks MySQL's protocol: each part of a run is one database.

process       one as a child process
binaries      the server's programs, for one kind of machine
container     one in a container
address       one that is there already
database      asks a server, by its address
run_database  a run's own databases
sink          a table or a query, read back
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import (
    Addressed,
    Boxed,
    Followed,
    MachineCheck,
    Mark,
    Server,
    Started,
    installed,
    pip_install,
    server_check,
)
from harness.fields.shape import Shape
from harness.hosts.images import Image
from harness.kinds import About
from harness.resources import Resources
from harness.sinks.sql.server import SqlServer

if TYPE_CHECKING:
    from harness.hosts.engine import Engine
    from harness.hosts.processes import ProcessHost

INSTALL = pip_install("mariadb")


class MariaDB(SqlServer):
    """One server."""

    about = About(
        name="mariadb",
        summary="a database server (MySQL's protocol); each part of a run is a database",
        example='env: {WAREHOUSE: "{mariadb.dsn}"}',
        options=Shape,
    )
    gives = ("dsn", "jdbc", "database")
    marks = (Mark(text="{mariadb.database}", call="pymysql.connect", argument="database", writes=True, sets="MYSQL_"),)
    bare = ("database",)
    client = "pymysql"
    image = Image("mariadb", "mariadb:10.11", "onceproof/mariadb:10.11")

    @property
    def machine_checks(self) -> tuple[MachineCheck, ...]:
        """Its client, and the server."""
        # Code that reads scenario files need not know how jars are downloaded.
        from harness.components.mariadb.binaries import seen

        return (
            MachineCheck("mariadb client", "the Python package pymysql", _client, INSTALL, optional=True),
            server_check("mariadb", "10.11, Linux on x86_64 with libsystemd", seen),
        )

    def as_processes(self, host: ProcessHost) -> Started:
        """From the binaries that are fetched as a jar."""
        _client()
        from harness.components.mariadb.process import MariaDBServer

        return MariaDBServer(host.session, host.java, logs=host.logs)

    def as_container(self, engine: Engine) -> Boxed:
        """Return one server."""
        _client()
        from harness.components.mariadb.container import MariaDBBox

        return MariaDBBox(engine, self.image.name)

    def at(self, address: str) -> Addressed:
        """Return an address as `mysql://user:password@host:port`."""
        _client()
        from harness.components.mariadb.address import MariaDBThere

        return MariaDBThere(address)

    def borrowed(self, text: str) -> Server:
        """Of another process of ours."""
        from harness.components.mariadb.address import MariaDBThere

        return MariaDBThere(text, ours=True)

    def followed(self, own: Resources, query: str) -> Followed:
        """Return a table of the pipeline's."""
        from harness.components.mariadb.sink.open_table import OpenTable
        from harness.sinks.sql.offsets import followed

        return followed(OpenTable(own.at, query, (), own.label, own.shared))


def _client() -> str:
    return installed("mariadb", "pymysql")


KIND = MariaDB()
