"""Where a pipeline stands that commits its offsets to its consumer group."""

from __future__ import annotations

import threading

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from harness.checkpoint import Offsets
from harness.component import Followed, remembered
from harness.components.kafka.access import client as client_of
from harness.components.kafka.run_topic import Topic
from harness.components.kafka.topics import whole
from harness.errors import StackError


def followed(own: Topic) -> Followed:
    """Return the run's own group. Raises StackError."""
    try:
        with whole() as client:
            admin = KafkaAdminClient(**client_of(own.bootstrap), kafka_client=client)
    except KafkaError as failure:
        raise StackError(f"asked Kafka for the consumer group {own.group}; saw {failure!r}") from failure
    alone = threading.Lock()

    def read() -> Offsets | None:
        try:
            with alone:
                found = admin.list_group_offsets({own.group: None})[own.group]
        except KafkaError:
            return None  # no such group yet, or its coordinator is on its way
        return own.places.numbered(
            (tp.topic, tp.partition, meta.offset) for tp, meta in found.items() if meta.offset >= 0
        )

    return Followed(remembered(read), admin.close)
