"""A run's own schemas: one in each database that it was given a part of."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.components.postgres.database import Databases
from harness.resources import Resources, labelled


@dataclass(frozen=True, kw_only=True)
class Schema:
    """How the harness finds it: an address whose search path it is."""

    dsn: str = field(repr=False)
    schema: str


class Provides:
    """What every server does for a run. `inside` is the same server as the pipeline's processes reach it; `shared` says
    that it has other users."""

    databases: Databases
    inside: Databases
    shared = False

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """Return a schema for each part. Raises StackError."""
        return {name: self._made(name, called(run_id)) for name in parts}

    def _made(self, name: str, schema: str) -> Resources:
        self.databases.create_schema(name, schema)
        return Resources(
            label=labelled("postgres", name),
            at=Schema(dsn=self.databases.dsn(name, schema), schema=self.databases.schema(name, schema)),
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

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Drop the schemas. Raises StackError, once everything was tried."""
        with contextlib.ExitStack() as steps:
            for name in names:
                steps.callback(self.databases.drop_schema, name, called(run_id))


def called(run_id: str) -> str:
    """Return what a run's schema is called."""
    return "run_" + run_id.lower().replace("-", "_")
