"""A run's own databases: one for each part that it was given."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from harness.components.mariadb.database import Server
from harness.resources import Resources, labelled


@dataclass(frozen=True, kw_only=True)
class Database:
    """How the harness finds it."""

    server: Server
    name: str

    def connect(self, **more: Any) -> Any:
        """Return a connection to it. Raises pymysql.Error."""
        return self.server.connect(self.name, **more)


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
