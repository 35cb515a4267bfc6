"""How far the pipeline says it is: by Spark's checkpoint, by a consumer group, or by a table that it keeps itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import psycopg2
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from harness.checkpoint import Offsets
from harness.components.postgres.sink.writers import writing
from harness.errors import SetupError, StackError
from harness.fields.placeholders import filled
from harness.run.observer import Observer
from harness.scenario import Scenario
from harness.sinks.base import statements
from harness.stack import Lease

STATEMENT_MS = 5_000
WAIT_MS = 2_000


@dataclass(frozen=True)
class Frontier:
    """`planned`: next offsets the pipeline has begun to work on; `committed`: those it calls done. `saving`: the
    statements of open transactions that have written where it says so."""

    kind: str
    planned: Callable[[], Offsets]
    committed: Callable[[], Offsets]
    close: Callable[[], None]
    saving: Callable[[], tuple[str, ...]] = lambda: ()


def frontier(scenario: Scenario, lease: Lease, observer: Observer) -> Frontier:
    """The frontier that the scenario names."""
    kind = scenario.pipeline.frontier
    if kind == "checkpoint":
        return Frontier(kind, observer.planned, observer.committed, lambda: None)
    look, close = _group(lease) if kind == "group" else _query(kind, lease)
    if kind == "group":
        return Frontier("group", look, look, close)
    dsn, query = lease.dsns["main"], filled(kind, lease.placeholders())
    return Frontier("query", look, look, close, lambda: statements(writing(dsn, query, wait_ms=WAIT_MS)[0]))


def _group(lease: Lease) -> tuple[Callable[[], Offsets], Callable[[], None]]:
    try:
        admin = KafkaAdminClient(bootstrap_servers=lease.bootstrap)
    except KafkaError as failure:
        raise StackError(f"asked Kafka for the consumer group {lease.group}; saw {failure!r}") from failure
    last: Offsets = {}
    alone = threading.Lock()

    def look() -> Offsets:
        nonlocal last
        try:
            with alone:
                found = admin.list_group_offsets({lease.group: None})[lease.group]
        except KafkaError:
            return last  # no such group yet, or its coordinator is on its way: what was known stands
        last = {tp.partition: meta.offset for tp, meta in found.items() if tp.topic == lease.topic and meta.offset >= 0}
        return last

    return look, admin.close


def _query(text: str, lease: Lease) -> tuple[Callable[[], Offsets], Callable[[], None]]:
    query = filled(text, lease.placeholders())
    try:
        connection = psycopg2.connect(lease.dsns["main"], application_name="onceproof frontier")
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f"set statement_timeout = {STATEMENT_MS}")
    except psycopg2.Error as failure:
        raise StackError(f"asked Postgres for the pipeline's frontier; saw {str(failure).strip()}") from failure
    last: Offsets = {}

    def look() -> Offsets:
        nonlocal last
        try:
            with connection.cursor() as cursor:
                cursor.execute(query)
                last = {int(row[0]): int(row[1]) for row in cursor.fetchall()}
        except psycopg2.errors.QueryCanceled:
            pass  # the pipeline holds a lock on it, maybe while a fault holds the pipeline: what was known stands
        except (psycopg2.Error, IndexError, TypeError, ValueError) as failure:
            asked = "asked the pipeline's frontier query for rows of (partition, next offset)"
            raise SetupError(f"{asked}; saw {failure}. Mend `frontier` in the scenario: {query}") from failure
        return last

    return look, connection.close


def end_offsets(lease: Lease) -> Offsets:
    """The next offset of each partition of the run's topic. Raises StackError."""
    partitions = [TopicPartition(lease.topic, p) for p in range(lease.partitions)]
    try:
        consumer = KafkaConsumer(bootstrap_servers=lease.bootstrap)
        try:
            return {tp.partition: int(offset) for tp, offset in consumer.end_offsets(partitions).items()}
        finally:
            consumer.close()
    except KafkaError as failure:
        raise StackError(f"asked Kafka where the topic {lease.topic} ends; saw {failure!r}") from failure
