"""What the pipelines into a Delta table share: arguments, a session that knows Delta, the stream of payments.

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
LAST = 2
"""The last of three partitions: with two cores its task begins when another one has written its file."""


def arguments(about: str | None, *more: str) -> argparse.Namespace:
    """The command line: where Kafka is, which topic, the table's folder, how large a batch may be, and the extras."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", "topic", "table", *more):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    return parser.parse_args()


def session(name: str) -> SparkSession:
    """The Spark session, with Delta in it; its jars come from spark-submit."""
    return (
        SparkSession.builder.appName(name)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .getOrCreate()
    )


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
