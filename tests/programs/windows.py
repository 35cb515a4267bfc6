"""Payments in any order, and how many there were in each ten seconds, once a watermark has closed them. Right, and in
no two runs alike: which batch closes a window hangs on what came with which batch, and the rows are shuffled.
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --folder, "{folder}"]
# setup:
#   postgres: |
#     create table payments (id bigint primary key, account text, written timestamptz default clock_timestamp());
#     create table windows (start timestamp primary key, n bigint)
# sink:
#   - postgres: select id, account from payments
#     expected: select id, account from ledger
#     key: [id]
#     query: payments
#   - postgres: windows
#     expected: |
#       select time_bucket(interval '10 seconds', event_time) as start, count(*) as n from ledger group by 1
#       having start + interval '90 seconds' <= (select max(event_time) from ledger)
#     key: [start]
#     query: windows
# ///

from __future__ import annotations

import source
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

LATE = "80 seconds"


def main() -> None:
    args = source.parser(__doc__).parse_args()
    spark = source.session()
    payments = source.stream(spark, args)
    # A watermark needs an instant; the session's zone is that of the input.
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    timed = payments.withColumn("event_time", f.col("event_time").cast("timestamp")).withWatermark("event_time", LATE)
    counts = timed.groupBy(f.window("event_time", "10 seconds")).count()
    windows = counts.selectExpr("cast(window.start as timestamp_ntz) as start", "count as n")
    every = payments.writeStream.foreachBatch(payments_batch)
    every.option("checkpointLocation", f"{args.folder}/checkpoints/payments").start()
    closed = windows.writeStream.outputMode("append").foreachBatch(windows_batch)
    closed.option("checkpointLocation", f"{args.folder}/checkpoints/windows").start()
    spark.streams.awaitAnyTermination()


def payments_batch(payments: DataFrame, number: int) -> None:
    """Write one batch of payments in an order that nobody knows."""
    source.insert("payments", payments.orderBy(f.rand()), ("id", "account"), once=True)


def windows_batch(windows: DataFrame, number: int) -> None:
    """Write what the watermark has closed."""
    source.insert("windows", windows, ("start", "n"), once=True)


if __name__ == "__main__":
    main()
