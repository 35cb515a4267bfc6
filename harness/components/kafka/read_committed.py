"""Reads a topic from its beginning up to given ends, as a reader of committed records does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka import KafkaConsumer

from harness.errors import HarnessError, WaitError
from harness.wait import Deadline

BATCH = 20_000
POLL_MS = 500
LEAST_MS = 1000

Offsets = dict[Any, int]
"""By `kafka.TopicPartition`."""


def connected(bootstrap: str, deadline: Deadline, *, isolation: str = "read_committed") -> Any:
    """A consumer of no group, which begins nowhere by itself. Raises KafkaError."""
    return KafkaConsumer(
        bootstrap_servers=bootstrap,
        bootstrap_timeout_ms=left_ms(deadline),
        isolation_level=isolation,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        allow_auto_create_topics=False,
        max_partition_fetch_bytes=4 << 20,
        metrics_enabled=False,
    )


def from_the_beginning(consumer: Any, ends: Offsets, deadline: Deadline) -> None:
    """Begin at the first records. Raises HarnessError if the broker has already thrown records away."""
    for tp, first in consumer.beginning_offsets(list(ends), timeout_ms=left_ms(deadline)).items():
        if first > 0:
            saw = f"saw that the broker threw away {first} records of partition {tp.partition}"
            raise HarnessError(f"asked for all of {tp.topic}; {saw}. Raise the topic's retention")
        consumer.seek(tp, 0)


def records(consumer: Any, ends: Offsets, deadline: Deadline) -> Iterator[list[Any]]:
    """The records before the ends in parts, in order within each partition; the last part may be empty. Raises
    WaitError."""
    rows: list[Any] = []
    while behind := {tp.partition: at for tp in ends if (at := _position(consumer, tp, deadline)) < ends[tp]}:
        # Positions, not counts: the ends of transactions take offsets and give no record.
        if deadline.over():
            (topic,), wanted = {tp.topic for tp in ends}, {tp.partition: end for tp, end in ends.items()}
            waited = f"waited {deadline.seconds:g} s for {topic} to be read up to {wanted}"
            raise WaitError(f"{waited}; last saw positions {behind}. Give it more time, or look at the broker's log")
        for tp, found in consumer.poll(timeout_ms=min(POLL_MS, left_ms(deadline)), max_records=BATCH).items():
            rows.extend(record for record in found if record.offset < ends[tp])
        if len(rows) >= BATCH:
            yield rows
            rows = []
    yield rows


def _position(consumer: Any, tp: Any, deadline: Deadline) -> int:
    return int(consumer.position(tp, timeout_ms=left_ms(deadline)) or 0)


def left_ms(deadline: Deadline) -> int:
    """A question asked just before the deadline still needs time for its answer."""
    return max(LEAST_MS, int(deadline.left_s() * 1000))
