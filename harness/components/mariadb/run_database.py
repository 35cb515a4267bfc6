"""A run's own databases: one for each part that it was given."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.constants import ER

from harness.components.mariadb.database import OURS, Server, words
from harness.resources import GivesParts, Resources, labelled
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
        with closing(self.connect()) as connection, connection.cursor() as cursor:
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


class Provides(GivesParts):
    """What every server does for a run. `inside` is the same server as the pipeline's processes reach it; `shared` says
    that it has other users."""

    server: Server
    inside: Server
    shared = False

    def _give(self, run_id: str, name: str, request: Mapping[str, Any]) -> Resources:
        database = called(run_id, name)
        self.server.make(database)
        return Resources(
            label=labelled("mariadb", name),
            at=Database(server=self.server, name=database),
            placeholders={
                "dsn": self.inside.dsn(database),
                "jdbc": self.inside.jdbc(database),
                "database": database,
            },
            bare=() if name else ("database",),
            environment=self.inside.environment(database) if not name else {},
            secrets=(self.server.password,),
            shared=self.shared,
        )

    def _take(self, run_id: str, name: str) -> None:
        self.server.drop(called(run_id, name))


def called(run_id: str, part: str) -> str:
    """Return what the database of a part of a run is called."""
    return "_".join(filter(None, ("run", run_id.lower().replace("-", "_"), part)))
