"""What the pipelines that manage their offsets by hand share: how far the topic reaches, and slices of it as frames.

There is no Spark checkpoint here. A slice is read by a batch query with explicit offset ranges; where the next slice
begins is the program's own business, and that is what these programs are about.
"""

from __future__ import annotations

import argparse
import json
import threading
from contextlib import closing

import common
import psycopg2
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame, SparkSession

Offsets = dict[int, int]
"""Next offset by partition."""

LOAD = "select partition, next_offset, batch from progress"
STORE = """
    insert into progress (partition, next_offset, batch) values %s
    on conflict (partition) do update set next_offset = excluded.next_offset, batch = excluded.batch
"""


class Topic:
    """The topic as a source of slices."""

    def __init__(self, args: argparse.Namespace, group: str | None = None) -> None:
        self._args = args
        self.consumer = KafkaConsumer(bootstrap_servers=args.bootstrap, group_id=group, enable_auto_commit=False)
        numbers = sorted(self.consumer.partitions_for_topic(args.topic) or ())
        self.partitions = [TopicPartition(args.topic, number) for number in numbers]
        self.consumer.assign(self.partitions)

    def first(self) -> Offsets:
        """Where the topic begins."""
        found = self.consumer.beginning_offsets(self.partitions)
        return {at.partition: offset for at, offset in found.items()}

    def next_end(self, start: Offsets) -> Offsets:
        """Where the slice that begins at `start` ends; waits until there is something in it."""
        share = self._args.max_records // len(self.partitions)
        pause = threading.Event()
        while True:
            ends = self.consumer.end_offsets(self.partitions)
            cut = {at.partition: min(end, start[at.partition] + share) for at, end in ends.items()}
            if cut != start:
                return cut
            pause.wait(0.1)

    def read(self, spark: SparkSession, start: Offsets, end: Offsets) -> DataFrame:
        """The payments from `start` up to, not including, `end`."""
        topic = self._args.topic
        return common.payments(
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", self._args.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", json.dumps({topic: start}))
            .option("endingOffsets", json.dumps({topic: end}))
            .option("kafka.fetch.max.wait.ms", 5)
            .load()
        )

    def committed(self) -> tuple[int, Offsets]:
        """The number of the next batch and where it starts, from the group's committed offsets."""
        batch, start = 0, self.first()
        for at in self.partitions:
            found = self.consumer.committed(at, metadata=True)
            if found is not None:
                start[at.partition], batch = found.offset, int(found.metadata) + 1
        return batch, start

    def commit(self, batch: int, end: Offsets) -> None:
        """Commit `end` for the group; the number of the batch rides along as metadata."""
        self.consumer.commit({at: OffsetAndMetadata(end[at.partition], str(batch), -1) for at in self.partitions})


def load(topic: Topic) -> tuple[int, Offsets]:
    """The number of the next batch and where it starts, from the table `progress`."""
    with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
        cursor.execute(LOAD)
        rows = cursor.fetchall()
    return max((row[2] + 1 for row in rows), default=0), topic.first() | {row[0]: row[1] for row in rows}


def store(batch: int, end: Offsets) -> None:
    """Note in the table `progress` that everything before `end` is done."""
    with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
        execute_values(cursor, STORE, [(partition, offset, batch) for partition, offset in end.items()])
