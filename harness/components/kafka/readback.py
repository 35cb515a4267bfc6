"""Reads the source back as committed: the half of the ledger by which a pipeline is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from harness.components.kafka.read_committed import Offsets, connected, from_the_beginning, left_ms, records
from harness.components.kafka.run_topic import Topic
from harness.components.kafka.sender import HEADER
from harness.errors import HarnessError, StackError
from harness.run_folder.ledger import SOURCE, write_source
from harness.wait import Deadline, Waiting, until


def read_back(bootstrap: str, topic: str, path: Path, *, within_s: float) -> dict[int, int]:
    """Write the whole topic, as a reader of committed records sees it, to `path` (source.parquet) and return the
    next offset of each partition. Call it when nobody sends any more.

    Raises WaitError if a transaction stays open or the end is not reached within `within_s`; HarnessError if the
    broker has already thrown records away; StackError if it does not answer."""
    deadline = Deadline(within_s)
    try:
        ends = _ends(bootstrap, topic, deadline)
        consumer = connected(bootstrap, deadline)
        try:
            consumer.assign(list(ends))
            _stable(consumer, ends, deadline)
            from_the_beginning(consumer, ends, deadline)
            write_source(path, map(_batch, records(consumer, ends, deadline)))
        finally:
            consumer.close(autocommit=False)
    except KafkaError as failure:
        saw = f"saw {type(failure).__name__}: {failure}. Is the broker up?"
        raise StackError(f"asked Kafka at {bootstrap} for the topic {topic}; {saw}") from failure
    return {tp.partition: offset for tp, offset in sorted(ends.items())}


def end_offsets(own: Topic) -> dict[int, int]:
    """The next offset of each partition of the run's topic. Raises StackError."""
    partitions = [TopicPartition(own.topic, number) for number in range(own.partitions)]
    try:
        consumer = KafkaConsumer(bootstrap_servers=own.bootstrap)
        try:
            return {tp.partition: int(offset) for tp, offset in consumer.end_offsets(partitions).items()}
        finally:
            consumer.close()
    except KafkaError as failure:
        raise StackError(f"asked Kafka where the topic {own.topic} ends; saw {failure!r}") from failure


def _ends(bootstrap: str, topic: str, deadline: Deadline) -> Offsets:
    """Where each partition ends, records of open transactions included."""
    consumer = connected(bootstrap, deadline, isolation="read_uncommitted")
    try:
        numbers = consumer.partitions_for_topic(topic)
        if not numbers:
            raise HarnessError(f"asked for the topic {topic}; saw none at {bootstrap}. Is it another broker?")
        ends: Offsets = consumer.end_offsets([TopicPartition(topic, n) for n in numbers], timeout_ms=left_ms(deadline))
    finally:
        consumer.close(autocommit=False)
    return ends


def _stable(consumer: Any, ends: Offsets, deadline: Deadline) -> None:
    """Wait until no transaction is open before the ends."""

    def look() -> bool | Waiting:
        stable = consumer.end_offsets(list(ends), timeout_ms=left_ms(deadline))
        behind = {tp.partition: stable[tp] for tp in ends if stable[tp] < ends[tp]}
        return Waiting(f"partitions {behind} stable up to there only") if behind else True

    until("open transactions in the source to end", look, within_s=deadline.left_s())


def _batch(found: list[Any]) -> pa.RecordBatch:
    columns: list[list[Any]] = [
        [record.partition for record in found],
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
