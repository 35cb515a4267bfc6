"""What the pipelines over an application's log share: arguments, session, the stream of lines, MariaDB's address.

Only the driver imports this file. Executors never see it: `stoppable` returns an inner function, which Spark ships by
value.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pymysql
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

LINE = r"^(\S+ \S+) (\S+) +(.*)$"
REQUEST = r"^request (\S+) "
Offsets = dict[int, int]
"""Next offset by partition."""


def arguments(about: str | None, *more: str) -> argparse.Namespace:
    """The command line: where Kafka is, which topic, how large a batch may be, and the named extras."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", "topic", *more):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    return parser.parse_args()


def stream(args: argparse.Namespace, start: Offsets | None = None) -> DataFrame:
    """A row for each line, with its partition and offset; from `start`, where the checkpoint says nothing else."""
    spark = SparkSession.builder.appName("error counts").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", json.dumps({args.topic: start}) if start else "earliest")
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .load()
    )
    line, message = records.value.cast("string"), f.col("message")
    parts = [
        f.regexp_extract(line, LINE, group).alias(name) for group, name in enumerate(("at", "level", "message"), 1)
    ]
    parsed = records.select("partition", "offset", *parts)
    return parsed.select(
        "partition",
        "offset",
        "level",
        f.date_trunc("minute", f.to_timestamp_ntz("at", f.lit("yyyy-MM-dd HH:mm:ss"))).alias("minute"),
        f.regexp_extract(message, REQUEST, 1).alias("request"),
        message,
    )


def login() -> dict[str, Any]:
    """How to reach MariaDB, from MYSQL_* variables: executors have not got the driver's environment."""
    return {
        "host": os.environ["MYSQL_HOST"],
        "port": int(os.environ["MYSQL_TCP_PORT"]),
        "user": os.environ["MYSQL_USER"],
        "password": os.environ["MYSQL_PWD"],
        "database": os.environ["MYSQL_DATABASE"],
        "charset": "utf8mb4",
    }


def connect(**more: Any) -> Any:
    """A connection of the driver's."""
    return pymysql.connect(**login(), **more)


def stoppable(save: Callable[[Iterator[Row]], None]) -> Callable[[Iterator[Row]], None]:
    """A writer for `foreachPartition` with a failpoint after its commit: no outside event says that the server has the
    rows of a partition, and Spark does not know yet that its task is done."""

    def saved(rows: Iterator[Row]) -> None:
        from harness import failpoint

        save(rows)
        failpoint.reach_in_task("partition-committed")

    return saved


def complete(args: argparse.Namespace, start: Offsets) -> Offsets:
    """The same with every partition of the topic: Spark takes all of them or none."""
    with closing(KafkaConsumer(bootstrap_servers=args.bootstrap)) as consumer:
        return {part: start.get(part, 0) for part in sorted(consumer.partitions_for_topic(args.topic) or ())}


class Group:
    """The offsets that a consumer group has committed."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._consumer = KafkaConsumer(bootstrap_servers=args.bootstrap, group_id=args.group, enable_auto_commit=False)
        numbers = sorted(self._consumer.partitions_for_topic(args.topic) or ())
        self._partitions = [TopicPartition(args.topic, number) for number in numbers]
        self._consumer.assign(self._partitions)

    def next_offsets(self) -> Offsets:
        """Where each partition goes on."""
        return {at.partition: self._consumer.committed(at) or 0 for at in self._partitions}

    def commit(self, ranges: list[tuple[int, int, int]]) -> None:
        """Everything before the end of each range is done."""
        topic = self._partitions[0].topic
        self._consumer.commit({TopicPartition(topic, part): OffsetAndMetadata(end, "", -1) for part, _, end in ranges})


def ranges(lines: DataFrame) -> list[tuple[int, int, int]]:
    """Each partition of a batch, where it begins and where it ends."""
    rows = lines.groupBy("partition").agg(f.min("offset"), f.max("offset")).collect()
    return sorted((part, first, last + 1) for part, first, last in rows)


def counts(lines: DataFrame) -> list[tuple[Any, int]]:
    """The errors of a batch by minute."""
    rows = lines.where("level = 'ERROR'").groupBy("minute").count().collect()
    return [(row["minute"], row["count"]) for row in rows]
