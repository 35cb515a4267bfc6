"""What a run is given, for tests that have no stack: parts of a database of their own, or parts that nobody answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import pytest

from harness.checkpoint import OffsetReader
from harness.component import Server, Started
from harness.components.kafka.process import Kafka
from harness.components.kafka.run_topic import Places, Topic
from harness.components.kafka.source import offsets_of
from harness.components.postgres.process import Postgres
from harness.components.postgres.run_schema import Schema
from harness.resources import Resources, RunResources
from harness.stacks.processes.stack import ProcessesStack

Own = dict[str, Resources]


class Ends(Started, Protocol):
    """A server that a test starts and ends."""

    def stop(self) -> None:
        """End it."""


S = TypeVar("S", bound=Ends)


def at(dsn: str = "", *, label: str = "postgres", schema: str = "", shared: bool = False) -> Resources:
    """A part of Postgres at an address."""
    return Resources(label=label, at=Schema(dsn=dsn, name=schema), shared=shared)


@contextmanager
def running(server: S) -> Iterator[S]:
    """A server, from its start to its end."""
    server.start()
    yield server
    server.stop()
    server.close()


@contextmanager
def parts_of(
    server: Server, request: pytest.FixtureRequest, asked: Mapping[str, Mapping[str, Any]] | None = None
) -> Iterator[Own]:
    """Parts of a server, for one test: those that are asked for, or a plain one and a second."""
    run_id, parts = f"t{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**9}", asked or {"": {}, "second": {}}
    given = server.provide(run_id, parts)
    try:
        yield {each.label: each for each in given.values()}
    finally:
        server.drop(run_id, list(parts))


def dsn(own: Mapping[str, Resources] | RunResources, label: str = "postgres") -> str:
    """The address of a part."""
    parts = own.parts if isinstance(own, RunResources) else own
    found: Schema = parts[label].at
    return found.dsn


def schema(own: RunResources, label: str = "postgres") -> Schema:
    """The run's schema there."""
    found: Schema = own.part(label).at
    return found


def topic(own: RunResources) -> Topic:
    """The run's topic."""
    found: Topic = own.part("kafka").at
    return found


def shared(own: Own) -> Own:
    """The same parts on a server with other users."""
    return {label: replace(each, shared=True) for label, each in own.items()}


def reader(name: str) -> OffsetReader:
    """What the offset log says of a topic."""
    return lambda line, log: offsets_of(Places((name,), 3), line)


def both(partitions: int = 1) -> dict[str, dict[str, Any]]:
    """What a run asks for that needs a topic and both databases."""
    return {"kafka": {"partitions": partitions}, "postgres": {}, "postgres.second": {}}


def broker(stack: ProcessesStack) -> Kafka:
    """The stack's broker, which is up."""
    found = stack.servers["kafka"]
    assert isinstance(found, Kafka)
    return found


def database(stack: ProcessesStack) -> Postgres:
    """The stack's database server, which is up."""
    found = stack.servers["postgres"]
    assert isinstance(found, Postgres)
    return found
