"""What the pipelines beside share: arguments, session, the stream of payments, a batch as rows in Arrow."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from harness import failpoint

PAYMENT = "id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz"
ROWS = pa.schema(
    [
        ("id", pa.int64()),
        ("account", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("currency", pa.string()),
        ("event_time", pa.timestamp("us")),
    ]
)
COLUMNS = ("id", "account", "amount", "currency", "event_time")


def arguments(about: str | None) -> argparse.Namespace:
    """The command line: where Kafka is, which topic, the place that the payments go to, the checkpoint."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", "topic", "into", "checkpoint"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    return parser.parse_args()


def run(args: argparse.Namespace, save: Callable[[pa.Table, int], None]) -> None:
    """Have each batch saved by the driver, as a table of payments in order of id, with the batch's number."""
    spark = SparkSession.builder.appName("own_reader").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .load()
    )
    payments = records.selectExpr(f"from_json(cast(value as string), '{PAYMENT}') as payment").select("payment.*")

    def batch(found: DataFrame, number: int) -> None:
        rows = [row.asDict() for row in found.collect()]  # Spark 3.5 has no toArrow
        save(pa.Table.from_pylist(rows, ROWS).sort_by("id"), number)

    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


def half_written(number: int) -> None:
    """A failpoint where one half of a batch is written: no outside event says that."""
    failpoint.reach("half-written", batch=number)


def all_written(number: int) -> None:
    """A failpoint where all of a batch is written: before the commit, in a program that has one."""
    failpoint.reach("all-written", batch=number)
