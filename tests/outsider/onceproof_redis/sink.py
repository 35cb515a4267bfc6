"""The sink `redis`: a list, or the values of a hash, whose entries are rows as JSON objects of texts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Any

import redis
from pydantic import Field

from harness.checkers.cells import Row
from harness.errors import StackError, UsageError
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusals
from harness.resources import Resources, labelled, part
from harness.scenario import Sink
from harness.sinks.base import Missing, OpenSink, Reading
from harness.sinks.table import SinkColumn
from onceproof_redis.server import Prefix


class Place(Shape):
    """Which key."""

    redis: Annotated[v.Label, Field(description="the name of a list or a hash, without the run's prefix")]


@dataclass(frozen=True)
class OpenKey:
    """One key of a run."""

    at: Prefix
    target: str

    def columns(self) -> tuple[SinkColumn, ...]:
        """Those of its first row."""
        rows = self._rows()
        return tuple(SinkColumn(name=name, type="text", family="text") for name in rows[0])

    def reading(self, *, wait_ms: int = 0) -> AbstractContextManager[Reading]:
        """All of it. Redis runs one command at a time, so the rows are consistent."""
        rows, columns = self._rows(), self.columns()
        for row in rows:
            if list(row) != [column.name for column in columns]:
                raise UsageError(f"the rows of {self.target} have other columns than its first one: {sorted(row)}")
        found: list[Row] = [tuple(row.values()) for row in rows]
        return contextlib.nullcontext(Reading(columns, iter([found]), lambda: False))

    def mark(self) -> str:
        """A digest of all of it."""
        return blake2b(json.dumps(sorted(self._entries())).encode(), digest_size=16).hexdigest()

    def busy(self) -> str:
        """Nothing: Redis has done what it has answered."""
        return ""

    def _rows(self) -> list[dict[str, str | None]]:
        try:
            rows = [json.loads(entry) for entry in self._entries()]
        except ValueError as error:
            raise UsageError(f"{self.target} holds an entry that is no JSON: {error}") from error
        if not rows:
            raise Missing(f"asked for {self.target}; there is no list and no hash of that name")
        return rows

    def _entries(self) -> list[str]:
        key = f"{self.at.prefix}:{self.target}"
        try:
            with contextlib.closing(self.at.client()) as client:
                if client.type(key) == "hash":
                    return [str(value) for value in client.hvals(key)]
                return [str(value) for value in client.lrange(key, 0, -1)]
        except redis.RedisError as error:
            raise StackError(f"asked Redis for {key}; saw {error}") from error


class RedisKey:
    """Read by the harness itself."""

    about = About(
        name="redis",
        summary="a list or a hash in Redis whose entries are rows as JSON",
        example="{redis: orders, expected: select id from ledger, key: [id]}",
        options=Place,
    )
    component = "redis"
    unread = ""

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """Any key may be there."""
        return iter(())

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Raises NotGiven."""
        return OpenKey(part(own, labelled(self.component, sink.part)).at, sink.target)


def entries(at: Prefix, target: str) -> Iterator[str]:
    """For those who count them."""
    yield from OpenKey(at, target)._entries()


KIND = RedisKey()
