"""Reads a run's topic whole and exactly, and takes its fingerprint while it may still change.

A reading goes up to the ends as they are when it begins: what a reader of committed records can have by then. Before
an open transaction it ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from zlib import crc32

from kafka import TopicPartition
from kafka.errors import KafkaError

from harness.checkers.cells import Row
from harness.components.kafka.readback import Offsets, connected, from_the_beginning, records
from harness.components.kafka.run_topic import Topic
from harness.components.kafka.sink.repeats import Repeats
from harness.components.kafka.sink.rows import columns_of, row_of
from harness.errors import StackError
from harness.sinks.base import Reading, Writer
from harness.sinks.json_columns import Wanted
from harness.wait import Deadline

READ_S = 120.0
READ_PER_S = 1000.0
"""How many records are read and compared in a second at least: a large topic has as much longer."""


@contextmanager
def reading(own: Topic, wanted: Sequence[Wanted], identity: Sequence[str]) -> Iterator[Reading]:
    """Its columns and rows. Raises UsageError for a record that cannot be read exactly. Raises StackError if the broker
    does not answer, WaitError if the ends are not reached in time."""
    try:
        ends: Offsets = {TopicPartition(own.topic, number): end for number, end in _ends(own, committed=True).items()}
        deadline = Deadline(READ_S + sum(ends.values()) / READ_PER_S)
        consumer = connected(own.bootstrap, deadline)
        try:
            consumer.assign(list(ends))
            from_the_beginning(consumer, ends, deadline)
            with closing(Repeats(wanted, identity)) as repeats:
                parts = _parts(records(consumer, ends, deadline), own.topic, wanted, repeats)
                yield Reading(columns_of(wanted), parts, lambda: False, dropped=lambda: repeats.dropped)
        finally:
            consumer.close(autocommit=False)
    except KafkaError as failure:
        raise _silent(own, f"read the topic {own.topic}", failure) from failure


def _parts(
    found: Iterator[list[object]], topic: str, wanted: Sequence[Wanted], repeats: Repeats
) -> Iterator[list[Row]]:
    for part in found:
        rows = ((record, row_of(record, wanted, topic=topic)) for record in part)
        yield [row for record, row in rows if repeats.first(row, partition=record.partition)]  # type: ignore[attr-defined]


def mark(own: Topic) -> str:
    """Return where each partition ends: with and without what is not committed. Raises StackError."""
    try:
        ends, stable = _ends(own), _ends(own, committed=True)
    except KafkaError as failure:
        raise _silent(own, f"say where the topic {own.topic} ends", failure) from failure
    return " ".join(f"{number}:{stable[number]}/{end}" for number, end in sorted(ends.items()))


def _ends(own: Topic, *, committed: bool = False) -> dict[int, int]:
    """Of every partition: one without a leader must not look as if it held nothing."""
    ends = own.topics.end_offsets(own.topic, committed=committed)
    if len(ends) < own.partitions:
        request = f"asked Kafka where the {own.partitions} partitions of {own.topic} end"
        raise StackError(f"{request}; it answered for {len(ends)}. See logs/kafka.log")
    return ends


def writing(own: Topic) -> list[Writer]:
    """Return who has written into it in a transaction that is open. Who writes without one is not seen. Raises
    StackError."""
    try:
        found = own.topics.open_transactions(own.topic, partitions=own.partitions)
    except KafkaError as failure:
        raise _silent(own, f"name the transactions open in {own.topic}", failure) from failure
    return [
        Writer(
            backend=None,
            table=crc32(f"{own.topic} {partition}".encode()),
            statement=f"transaction of producer {producer} in partition {partition} from offset {offset}",
        )
        for partition, producer, offset in found
    ]


def _silent(own: Topic, request: str, failure: KafkaError) -> StackError:
    saw = f"saw {type(failure).__name__}: {failure}. See logs/kafka.log"
    return StackError(f"asked Kafka at {own.bootstrap} to {request}; {saw}")
