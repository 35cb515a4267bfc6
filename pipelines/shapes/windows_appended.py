"""Payments in windows of ten seconds, in append mode, appended to a table in Postgres. BROKEN: a batch may come again.

A window is written once, by the batch under whose watermark it is closed, and leaves the state then. A batch that is
run again begins with the state before it: it closes the same windows again, and the table gets them twice.

    spark-submit windows_appended.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Fixed version: windows_kept.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table windows (starts timestamp, payments bigint, amount numeric(14, 2))
# sink:
#   postgres: windows
#   expected: |
#     select time_bucket(interval '10 seconds', event_time) as starts, count(*) as payments, sum(amount) as amount
#     from ledger where not (_late or _open) group by 1
#   key: [starts]
#   watermark:
#     of: event_time
#     closes: time_bucket(interval '10 seconds', event_time) + interval '10 seconds'
#     delay: 10s
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

PUT = "insert into windows (starts, payments, amount) values %s"


def batch(windows: DataFrame, number: int) -> None:
    """Write the windows that this batch has closed."""
    stream.put(PUT, windows.selectExpr("string(window.start)", "payments", "amount").collect())


def main() -> None:
    args = stream.arguments(__doc__)
    windows = (
        stream.payments(args)
        .withWatermark("event_time", "10 seconds")
        .groupBy(f.window("event_time", "10 seconds"))
        .agg(f.count("*").alias("payments"), f.sum("amount").alias("amount"))
    )
    writing = windows.writeStream.outputMode("append").foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
