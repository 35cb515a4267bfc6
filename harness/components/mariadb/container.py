"""MariaDB in a container."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import pymysql

from harness import wait
from harness.components.mariadb import process
from harness.components.mariadb.database import Server, words
from harness.components.mariadb.run_database import Provides
from harness.hosts.container import START_S, InContainer
from harness.hosts.engine import Engine, Wanted

PORT = 3306
# The image grants its other user one database alone, and each part of a run is a database.
USER = "root"
SETTINGS = {name: value for name, value in process.SETTINGS.items() if name != "bind-address"}


class MariaDBBox(Provides, InContainer):
    """The database server."""

    port = PORT

    def __init__(self, engine: Engine, image: str) -> None:
        self._engine, self._image = engine, image
        self._password = secrets.token_hex(16)

    def start(self) -> None:
        """Start it and return when it answers a query from outside. Raises StackError."""
        container = self._up(
            Wanted(
                name="mariadb",
                image=self._image,
                command=["mariadbd", *(f"--{name}={value}" for name, value in SETTINGS.items())],
                environment={"MARIADB_ROOT_PASSWORD": self._password},
                ports={PORT: 0},
            )
        )
        self.server = Server(self._engine.host, container.port(PORT), USER, self._password)
        self.inside = Server("mariadb", PORT, USER, self._password)
        self.version = container.ready(self._answer, within_s=START_S)

    def describe(self) -> Mapping[str, Any]:
        """Return version, and what we set."""
        return {"version": self.version, "settings": dict(SETTINGS)}

    def _answer(self) -> str | wait.Waiting:
        try:
            return self.server.ask("select version()")
        except pymysql.Error as error:
            return wait.Waiting(words(error))
