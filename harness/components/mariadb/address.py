"""MariaDB that is there already, at an address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import pymysql

from harness.components.mariadb.database import Server, words
from harness.components.mariadb.run_database import Provides
from harness.errors import StackError, UsageError
from harness.hosts.ports import HOST

PORT = 3306
MUST_BE = "--at mariadb=… must be an address as mysql://user:password@host:port; what was given is none"
SEEN = """
select @@performance_schema and exists(
    select 1 from performance_schema.setup_instruments where name = 'wait/lock/metadata/sql/mdl' and enabled = 'YES')
"""


class MariaDBThere(Provides):
    """A server that is there: somebody else's, unless it is `ours`, of another process. A database is made there for
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
        """Where it is, and its version. Raises StackError also where it does not show who holds a lock."""
        version = self.server.version()
        try:
            seen = self.server.ask(SEEN)
        except pymysql.Error as error:
            asked = f"asked {self.plain} whether it shows who writes; it refused: {words(error)}"
            raise StackError(f"{asked}. Grant {self.server.user} select on performance_schema") from error
        if seen != "1":
            raise StackError(
                f"asked {self.plain} who writes; it does not say. Start it with --performance-schema=ON "
                "--performance-schema-instrument='wait/lock/metadata/sql/mdl=ON'"
            )
        return {"at": f"{self.server.host}:{self.server.port}", "version": version}

    def close(self) -> None:
        """Nothing is held."""


def server(address: str) -> Server:
    """The server of an address. Its words are not repeated where it is none: they may hold a password. Raises
    UsageError."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or PORT
    except ValueError:
        raise UsageError(MUST_BE) from None
    if parts.scheme not in ("mysql", "mariadb") or not HOST.fullmatch(host) or not parts.username:
        raise UsageError(MUST_BE)
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise UsageError(f"{MUST_BE}: it names a database or options, and each run makes databases of its own")
    password = os.environ.get("MYSQL_PWD", "") if parts.password is None else unquote(parts.password)
    return Server(host, port, unquote(parts.username), password)
