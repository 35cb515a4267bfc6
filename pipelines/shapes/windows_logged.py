"""Payments in windows of ten seconds, in update mode under a watermark, logged in a table in Postgres. BROKEN: a batch
may come again.

A batch writes the windows that it has changed, with their totals so far. One that is run again begins with the state
before it and comes to the same rows: the totals are right, and the log gets them twice.

    spark-submit windows_logged.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Fixed version: windows_updated_watermark.py, which keeps one row for each window
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}", --max-records, "25"]
# setup:
#   postgres: |
#     create table updates (starts timestamp, batch bigint, payments bigint, amount numeric(14, 2))
# sink:
#   postgres: updates
#   expected: |
#     select starts, batch, sum(n) over so_far as payments, sum(total) over so_far as amount
#     from (
#       select time_bucket(interval '10 seconds', event_time) as starts, _batch as batch, count(*) as n,
#              sum(amount) as total
#       from ledger where not _late group by 1, 2
#     )
#     window so_far as (partition by starts order by batch)
#   key: [starts, batch]
#   watermark:
#     of: event_time
#     closes: time_bucket(interval '10 seconds', event_time) + interval '10 seconds'
#     delay: 5s
#     mode: update
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

PUT = "insert into updates (starts, batch, payments, amount) values %s"


def batch(windows: DataFrame, number: int) -> None:
    """Log the windows that this batch has changed, with their totals so far."""
    stream.put(PUT, windows.selectExpr("string(window.start)", str(number), "payments", "amount").collect())


def main() -> None:
    args = stream.arguments(__doc__)
    windows = (
        stream.payments(args)
        .withWatermark("event_time", "5 seconds")
        .groupBy(f.window("event_time", "10 seconds"))
        .agg(f.count("*").alias("payments"), f.sum("amount").alias("amount"))
    )
    writing = windows.writeStream.outputMode("update").foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
