"""MariaDB that is there already, at an address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pymysql

from harness.components.mariadb.database import Server, words
from harness.components.mariadb.run_database import Provides
from harness.errors import StackError, UsageError
from harness.fields.logins import login

PORT = 3306
MUST_BE = "--at mariadb=… must be an address as mysql://user:password@host:port; what was given is none"
SEEN = """
select @@performance_schema and exists(
    select 1 from performance_schema.setup_instruments where name = 'wait/lock/metadata/sql/mdl' and enabled = 'YES')
"""


class MariaDBThere(Provides):
    """A server that is there: the user's, unless it is `ours`, of another process. A database is made there for
    each part of a run."""

    def __init__(self, address: str, *, ours: bool = False) -> None:
        self.shared = not ours
        self.server = self.inside = server(address)
        self.plain = f"mysql://{self.server.user}@{self.server.host}:{self.server.port}"

    @property
    def address(self) -> str:
        """With the password, wherever it came from."""
        return self.server.dsn("")

    def describe(self) -> Mapping[str, Any]:
        """Return where it is, and its version. Raises StackError also where it does not show who holds a lock."""
        version = self.server.version()
        try:
            seen = self.server.ask(SEEN)
        except pymysql.Error as error:
            request = f"asked {self.plain} whether it shows who writes; it refused: {words(error)}"
            raise StackError(f"{request}. Grant {self.server.user} select on performance_schema") from error
        if seen != "1":
            raise StackError(
                f"asked {self.plain} who writes; it does not say. Start it with --performance-schema=ON "
                "--performance-schema-instrument='wait/lock/metadata/sql/mdl=ON'"
            )
        return {"at": f"{self.server.host}:{self.server.port}", "version": version}

    def close(self) -> None:
        """Nothing is held."""


def server(address: str) -> Server:
    """Return the server of an address. Raises UsageError."""
    found = login(
        address, schemes=("mysql", "mariadb"), port=PORT, variable="MYSQL_PWD", must_be=MUST_BE,
        alone="a database or options, and each run makes its own databases",
    )  # fmt: skip
    if not found.user:
        raise UsageError(MUST_BE)
    return Server(found.host, found.port, found.user, found.password)
