"""What the programs of the tests share: arguments, session, the stream of payments, one transaction a batch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing

import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame, SparkSession

PAYMENT = "id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz, seq bigint"


def parser(about: str | None) -> argparse.ArgumentParser:
    """A parser of what every program needs."""
    made = argparse.ArgumentParser(description=about)
    for name in ("bootstrap", "topic", "folder"):
        made.add_argument(f"--{name}", required=True)
    made.add_argument("--max-records", type=int, default=100)
    return made


def session() -> SparkSession:
    """The session; the master comes from spark-submit."""
    return SparkSession.builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()


def stream(spark: SparkSession, args: argparse.Namespace, *, max_records: int | None = None) -> DataFrame:
    """The topic as a stream of payments."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", max_records or args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .load()
    )
    return records.selectExpr(f"from_json(cast(value as string), '{PAYMENT}') as payment").select("payment.*")


def insert(table: str, rows: DataFrame, columns: Sequence[str], *, once: bool = False, each: bool = False) -> None:
    """Insert the rows of one batch in one transaction, or with `each` one by one; `once`: those that are there already
    are left alone."""
    values = [tuple(row) for row in rows.select(*columns).collect()]
    more = " on conflict do nothing" if once else ""
    with closing(psycopg2.connect("")) as database, database.cursor() as cursor:
        database.autocommit = each
        size = 1 if each else 1000
        execute_values(cursor, f"insert into {table} ({', '.join(columns)}) values %s{more}", values, page_size=size)
        if not each:
            database.commit()
