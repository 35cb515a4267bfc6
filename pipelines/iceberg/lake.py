"""What the pipelines into an Iceberg table share: arguments, a session with the catalog `lake`, the stream of payments.

Only the driver imports this file. Executors never see it: what runs there is an inner function, which Spark ships by
value.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

PAYMENT = "id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz"
TABLE = "lake.shop.payments"
LAST = 2
"""The last of three partitions: with two cores its task begins when another one has written its file."""
"""Where Spark keeps the number of the batch for its tasks."""


def arguments(about: str | None, *more: str) -> argparse.Namespace:
    """The command line: where Kafka is, which topic, the warehouse, how large a batch may be, and the named extras."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", "topic", "warehouse", *more):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    return parser.parse_args()


def session(name: str, args: argparse.Namespace) -> SparkSession:
    """The Spark session, with the catalog and the table in it; the jar comes from spark-submit."""
    spark = (
        SparkSession.builder.appName(name)
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        .config("spark.sql.catalog.lake.warehouse", args.warehouse)
        .config("spark.sql.shuffle.partitions", "3")
        .getOrCreate()
    )
    spark.sql(f"create table if not exists {TABLE} ({PAYMENT}) using iceberg")
    return spark


def stream(spark: SparkSession, args: argparse.Namespace) -> DataFrame:
    """The topic as a stream of payments."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .load()
    )
    parsed = records.selectExpr(f"from_json(cast(value as string), '{PAYMENT}') as payment").select("payment.*")
    return parsed.withColumn("id", gate()("id"))


def gate() -> Callable[[str], Column]:
    """A column as it is, with a failpoint at each row of the last partition: no outside event says that some tasks of a
    batch have written their files and others have not."""
    last = LAST

    def passed(value: int) -> int:
        task = TaskContext.get()
        if task is not None and task.partitionId() == last:
            from harness import failpoint

            failpoint.reach_in_task("task-begun")
        return value

    return f.udf(passed, "bigint")
