"""What the access-log pipelines share: the command line and the stream of errors, each with its minute.

Only the driver imports this file.
"""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

MINUTE = r" \[(\d\d/\w{3}/\d{4}:\d\d:\d\d):"
LEVEL = r" (\w+) \S+$"


def arguments(about: str | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", "topic", "checkpoint"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    return parser.parse_args()


def errors(args: argparse.Namespace) -> DataFrame:
    """One row for each line of level ERROR: the minute it happened in."""
    spark = SparkSession.builder.appName("access logs").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .load()
    )
    line = records.value.cast("string")
    stamp = f.regexp_extract(line, MINUTE, 1)
    wrong = records.where(f.regexp_extract(line, LEVEL, 1) == "ERROR")
    # Read no further than the minute: that is the truncation.
    return wrong.select(f.to_timestamp_ntz(stamp, f.lit("dd/MMM/yyyy:HH:mm")).alias("minute"))
