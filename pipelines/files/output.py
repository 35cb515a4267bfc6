"""What the pipelines into files share: arguments, session, the stream of payments.

Only the driver imports this file. Executors never see it: what runs there is an inner function, which Spark ships by
value.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f

PAYMENT = "id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz"
LAST = 2
"""The last of three partitions."""


def arguments(about: str | None, *more: str) -> argparse.Namespace:
    """The command line: where Kafka is, which topic, the output's folder, how large a batch may be, and the extras."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", "topic", "output", *more):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    return parser.parse_args()


def stream(args: argparse.Namespace) -> DataFrame:
    """The topic as a stream of payments, each with the partition of the topic that it came from."""
    spark = SparkSession.builder.appName("files").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .load()
    )
    parsed = records.selectExpr(f"from_json(cast(value as string), '{PAYMENT}') as payment", "partition as part")
    return parsed.select("payment.*", "part").withColumn("id", gate()("id"))


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


def writer(folder: str) -> Callable[[Sequence[Row], str], None]:
    """What writes payments into a Parquet file of that name, which appears whole, by a rename. After it there is a
    failpoint: the file is there, and Spark does not know yet that its task is done."""
    Path(folder).mkdir(parents=True, exist_ok=True)

    def write(rows: Sequence[Row], name: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from harness import failpoint

        types = {
            "id": pa.int64(),
            "account": pa.string(),
            "amount": pa.decimal128(12, 2),
            "currency": pa.string(),
            "event_time": pa.timestamp("us"),
        }
        table = pa.table({column: pa.array([row[column] for row in rows], kind) for column, kind in types.items()})
        hidden = Path(folder, f".{name}")
        pq.write_table(table, hidden)
        hidden.rename(Path(folder, name))
        failpoint.reach_in_task("file-written")

    return write
