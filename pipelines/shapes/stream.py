"""What the pipelines of many shapes share: arguments, the stream of payments, one way to hand rows to Postgres.

Only the driver imports this file, and the driver writes: the results are small.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame, SparkSession

PAYMENT = "id bigint, account string, amount decimal(12, 2), event_time timestamp"


def arguments(about: str | None, *, topic: str = "topic") -> argparse.Namespace:
    """The command line: where Kafka is, which topic, where the checkpoint is, how large a batch may be."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", topic, "checkpoint"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    return parser.parse_args()


def payments(args: argparse.Namespace, topic: str = "") -> DataFrame:
    """A topic (of the command line, if none is named) as a stream of payments, times in UTC, each with its offset."""
    spark = (
        SparkSession.builder.appName("shapes")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", topic or args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .load()
    )
    return records.selectExpr("offset as off", f"from_json(string(value), '{PAYMENT}') as p").select("off", "p.*")


def put(sql: str, rows: Sequence[Any]) -> None:
    """Hand all rows to one statement, `... values %s ...`, in one transaction."""
    if rows:
        with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
            execute_values(cursor, sql, [tuple(row) for row in rows], page_size=len(rows))
