"""A run's own databases: one for each part that it was given."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.constants import ER

from harness.components.mariadb.database import OURS, Server, words
from harness.resources import Resources, labelled
from harness.sinks.sql.part import SqlPart

TOOK_TOO_LONG = 1969


@dataclass(frozen=True, kw_only=True)
class Database(SqlPart):
    """How the harness finds it."""

    title = "MariaDB"
    error = pymysql.Error
    limit = "set max_statement_time = {seconds}"
    server: Server
    name: str

    def connect(self, name: str = OURS) -> Any:
        """Return a connection that commits each statement. Raises pymysql.Error."""
        return self.server.connect(self.name, name=name)

    def run(self, text: str) -> None:
        """Statement by statement: in MariaDB each that makes a table commits."""
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(text)
            while cursor.nextset():
                pass

    def words(self, failure: BaseException) -> str:
        """Return them without their number."""
        return words(failure)

    def waited(self, failure: BaseException) -> bool:
        """Return whether it was for a lock, or for longer than `max_statement_time`."""
        return isinstance(failure, pymysql.Error) and failure.args[:1] in ((ER.LOCK_WAIT_TIMEOUT,), (TOOK_TOO_LONG,))

    def lost(self, connection: Any) -> bool:
        """Return whether it is closed."""
        return not connection.open


class Provides:
    """What every server does for a run. `inside` is the same server as the pipeline's processes reach it; `shared` says
    that it has other users."""

    server: Server
    inside: Server
    shared = False

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """Return a database for each part. Raises StackError."""
        return {part: self._made(part, called(run_id, part)) for part in parts}

    def _made(self, part: str, name: str) -> Resources:
        self.server.make(name)
        return Resources(
            label=labelled("mariadb", part),
            at=Database(server=self.server, name=name),
            placeholders={"dsn": self.inside.dsn(name), "jdbc": self.inside.jdbc(name), "database": name},
            bare=() if part else ("database",),
            environment=self.inside.environment(name) if not part else {},
            secrets=(self.server.password,),
            shared=self.shared,
        )

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Drop the databases. Raises StackError, once everything was tried."""
        with contextlib.ExitStack() as steps:
            for part in names:
                steps.callback(self.server.drop, called(run_id, part))


def called(run_id: str, part: str) -> str:
    """Return what the database of a part of a run is called."""
    return "_".join(filter(None, ("run", run_id.lower().replace("-", "_"), part)))
