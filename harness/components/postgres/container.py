"""Postgres in a container."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import psycopg2

from harness import wait
from harness.components.postgres import process
from harness.components.postgres.database import Databases
from harness.components.postgres.run_schema import Provides
from harness.hosts.container import START_S, InContainer
from harness.hosts.engine import Engine, Wanted

PORT = 5432
SETTINGS = {
    name: process.SETTINGS[name]
    for name in ("max_connections", "max_prepared_transactions", "shared_buffers", "timezone", "log_timezone")
}


class PostgresBox(Provides, InContainer):
    """The database server."""

    port = PORT

    def __init__(self, engine: Engine, image: str) -> None:
        self._engine, self._image = engine, image
        self._password = secrets.token_hex(16)

    def start(self) -> None:
        """Start it and return when it answers a query from outside and has our databases. Raises StackError."""
        command = ["postgres"]
        for name, value in SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        who = {"POSTGRES_USER": process.USER, "POSTGRES_PASSWORD": self._password, "POSTGRES_DB": "postgres"}
        who["POSTGRES_INITDB_ARGS"] = "--encoding=UTF8 --locale=C"
        wanted = Wanted(name="postgres", image=self._image, command=command, environment=who, ports={PORT: 0})
        container = self._up(wanted)
        self.databases = Databases(self._engine.host, container.port(PORT), process.USER, self._password)
        self.inside = self.databases.at("postgres", PORT)
        self.version = container.ready(self._answer, within_s=START_S)
        self.databases.make("")

    def describe(self) -> Mapping[str, Any]:
        """Return version, and what we set."""
        return {"version": self.version, "settings": dict(SETTINGS)}

    def _answer(self) -> str | wait.Waiting:
        try:
            return self.databases.ask("show server_version", of="postgres")
        except psycopg2.OperationalError as error:
            return wait.Waiting(str(error).strip())
