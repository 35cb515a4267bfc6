"""A run's own schemas: one in each database that it was given a part of."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import psycopg2

from harness.components.postgres.database import Databases
from harness.resources import GivesParts, Resources, labelled
from harness.sinks.sql.part import SqlPart

CONNECT_S = 10


@dataclass(frozen=True, kw_only=True)
class Schema(SqlPart):
    """How the harness finds it: an address whose search path it is."""

    title = "Postgres"
    error = psycopg2.Error
    limit = "set statement_timeout = '{seconds}s'"
    dsn: str = field(repr=False)
    name: str

    def connect(self, name: str) -> Any:
        """Return a connection that commits each statement. Raises psycopg2.Error."""
        connection = connected(self.dsn, name)
        connection.autocommit = True
        return connection

    def run(self, text: str) -> None:
        """All of it in one transaction."""
        with closing(psycopg2.connect(self.dsn)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(text)

    def words(self, failure: BaseException) -> str:
        """Return them with the line and the place that they point to."""
        return str(failure).strip()

    def waited(self, failure: BaseException) -> bool:
        """Return whether its statement's time was up."""
        return isinstance(failure, psycopg2.errors.QueryCanceled)

    def lost(self, connection: Any) -> bool:
        """Return whether it is closed."""
        return bool(connection.closed)


class Provides(GivesParts):
    """What every server does for a run. `inside` is the same server as the pipeline's processes reach it; `shared` says
    that it has other users."""

    databases: Databases
    inside: Databases
    shared = False

    def _give(self, run_id: str, name: str, request: Mapping[str, Any]) -> Resources:
        schema = called(run_id)
        self.databases.create_schema(name, schema)
        return Resources(
            label=labelled("postgres", name),
            at=Schema(dsn=self.databases.dsn(name, schema), name=self.databases.schema(name, schema)),
            placeholders={
                "dsn": self.inside.dsn(name, schema),
                "jdbc": self.inside.jdbc(name, schema),
                "schema": self.inside.schema(name, schema),
            },
            bare=() if name else ("schema",),
            environment=self.inside.environment(schema) if not name else {},
            secrets=(self.databases.password,),
            shared=self.shared,
        )

    def _take(self, run_id: str, name: str) -> None:
        self.databases.drop_schema(name, called(run_id))


def connected(dsn: str, name: str) -> Any:
    """Return a connection to an address; the server knows it by `name`. Raises psycopg2.Error."""
    return psycopg2.connect(dsn, connect_timeout=CONNECT_S, application_name=name)


def called(run_id: str) -> str:
    """Return what a run's schema is called."""
    return "run_" + run_id.lower().replace("-", "_")
