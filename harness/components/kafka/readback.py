"""Reads topics as committed, from their beginning up to given ends; and so the source back: the half of the ledger by
which a pipeline is judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from harness.components.kafka.access import Address
from harness.components.kafka.access import client as client_of
from harness.components.kafka.run_topic import Places, Topic
from harness.components.kafka.sender import HEADER
from harness.components.kafka.topics import whole
from harness.errors import HarnessError, StackError, WaitError
from harness.run_folder.ledger import SOURCE, write_source
from harness.wait import Deadline, Waiting, until

BATCH = 20_000
POLL_MS = 500
LEAST_MS = 1000

Offsets = dict[Any, int]
"""By `kafka.TopicPartition`."""


def read_back(
    bootstrap: Address, places: Places, path: Path, *, there: Sequence[str] = (), within_s: float
) -> dict[int, int]:
    """Write the whole topics, as a reader of committed records sees them, to `path` (source.parquet) and return the
    next offset of each partition; `there` names the topics that were made, if not all were. Call it when no producer
    sends any more.

    Raises WaitError if a transaction stays open or the end is not reached within `within_s`; HarnessError if the
    broker has already thrown records away; StackError if it does not answer."""
    deadline = Deadline(within_s)
    try:
        ends = _ends(bootstrap, there or places.topics, deadline)
        consumer = connected(bootstrap, deadline)
        try:
            consumer.assign(list(ends))
            _stable(consumer, ends, deadline)
            from_the_beginning(consumer, ends, deadline)
            write_source(path, (_batch(found, places) for found in records(consumer, ends, deadline)))
        finally:
            consumer.close(autocommit=False)
    except KafkaError as failure:
        saw = f"saw {type(failure).__name__}: {failure}. Is the broker up?"
        raise StackError(f"asked Kafka at {bootstrap} for the topic {', '.join(places.topics)}; {saw}") from failure
    return _numbered(places, ends)


def end_offsets(own: Topic) -> dict[int, int]:
    """Return the next offset of each partition of the run's topics that were made. Raises StackError."""
    partitions = [TopicPartition(topic, number) for topic in own.there for number in range(own.partitions)]
    try:
        with whole() as client:
            consumer = KafkaConsumer(**client_of(own.bootstrap), kafka_client=client)
        try:
            return _numbered(own.places, consumer.end_offsets(partitions))
        finally:
            consumer.close()
    except KafkaError as failure:
        raise StackError(f"asked Kafka where the topic {own.topic} ends; saw {failure!r}") from failure


def _numbered(places: Places, ends: Offsets) -> dict[int, int]:
    return dict(sorted(places.numbered((tp.topic, tp.partition, int(offset)) for tp, offset in ends.items()).items()))


def _ends(bootstrap: Address, topics: Sequence[str], deadline: Deadline) -> Offsets:
    """Return where each partition ends, records of open transactions included."""
    consumer = connected(bootstrap, deadline, isolation="read_uncommitted")
    try:
        numbers = {topic: consumer.partitions_for_topic(topic) for topic in topics}
        if missing := [topic for topic, found in numbers.items() if not found]:
            raise HarnessError(f"asked for the topic {missing[0]}; saw none at {bootstrap}. Is it another broker?")
        partitions = [TopicPartition(topic, number) for topic, found in numbers.items() for number in found]
        ends: Offsets = consumer.end_offsets(partitions, timeout_ms=left_ms(deadline))
    finally:
        consumer.close(autocommit=False)
    return ends


def _stable(consumer: Any, ends: Offsets, deadline: Deadline) -> None:
    """Wait until no transaction is open before the ends."""

    def stable_to_the_ends() -> bool | Waiting:
        stable = consumer.end_offsets(list(ends), timeout_ms=left_ms(deadline))
        behind = {_name(tp): stable[tp] for tp in ends if stable[tp] < ends[tp]}
        return Waiting(f"partitions {behind} stable up to there only") if behind else True

    until("open transactions in the source to end", stable_to_the_ends, within_s=deadline.left_s())


def _batch(found: list[Any], places: Places) -> pa.RecordBatch:
    columns: list[list[Any]] = [
        [places.number(record.topic, record.partition) for record in found],
        [record.offset for record in found],
        [record.timestamp for record in found],
        [record.key for record in found],
        [record.value for record in found],
        [_seq(record.headers) for record in found],
    ]
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, SOURCE, strict=True)]
    return pa.record_batch(arrays, schema=SOURCE)


def _seq(headers: list[tuple[str, bytes]]) -> int | None:
    for name, value in headers:
        if name == HEADER and len(value) == 8:
            return int.from_bytes(value, "big", signed=True)
    return None


def connected(bootstrap: Address, deadline: Deadline, *, isolation: str = "read_committed") -> Any:
    """Return a consumer of no group, which begins nowhere by itself. Raises KafkaError."""
    with whole() as client:
        return KafkaConsumer(
            **client_of(bootstrap),
            bootstrap_timeout_ms=left_ms(deadline),
            isolation_level=isolation,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            max_partition_fetch_bytes=4 << 20,
            metrics_enabled=False,
            kafka_client=client,
        )


def from_the_beginning(consumer: Any, ends: Offsets, deadline: Deadline) -> None:
    """Begin at the first records. Raises HarnessError if the broker has already thrown records away."""
    for tp, first in consumer.beginning_offsets(list(ends), timeout_ms=left_ms(deadline)).items():
        if first > 0:
            saw = f"saw that the broker threw away {first} records of partition {tp.partition}"
            raise HarnessError(f"asked for all of {tp.topic}; {saw}. Raise the topic's retention")
        consumer.seek(tp, 0)


def records(consumer: Any, ends: Offsets, deadline: Deadline) -> Iterator[list[Any]]:
    """Yield the records before the ends in parts, in order within each partition; the last part may be empty. Raises
    WaitError."""
    rows: list[Any] = []
    while behind := {_name(tp): at for tp in ends if (at := _position(consumer, tp, deadline)) < ends[tp]}:
        # Positions, not counts: the ends of transactions take offsets and give no record.
        if deadline.over():
            wanted = {_name(tp): end for tp, end in ends.items()}
            waited = f"waited {deadline.seconds:g} s for topics to be read up to {wanted}"
            raise WaitError(f"{waited}; last saw positions {behind}. Give it more time, or read the broker's log")
        for tp, found in consumer.poll(timeout_ms=min(POLL_MS, left_ms(deadline)), max_records=BATCH).items():
            rows.extend(record for record in found if record.offset < ends[tp])
        if len(rows) >= BATCH:
            yield rows
            rows = []
    yield rows


def _name(tp: Any) -> str:
    return f"{tp.topic} {tp.partition}"


def _position(consumer: Any, tp: Any, deadline: Deadline) -> int:
    return int(consumer.position(tp, timeout_ms=left_ms(deadline)) or 0)


def left_ms(deadline: Deadline) -> int:
    """A question asked just before the deadline still needs time for its answer."""
    return max(LEAST_MS, int(deadline.left_s() * 1000))
