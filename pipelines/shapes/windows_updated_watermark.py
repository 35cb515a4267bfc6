"""Payments in windows of ten seconds, in update mode under a watermark, into Postgres. Holds: a total is written over.

The totals are Spark's state, which goes back with the batch. What the watermark drops hangs on the offsets and the
watermark that are logged before the batch runs: the same payments are dropped when it is run again.

    spark-submit windows_updated_watermark.py --bootstrap localhost:9092 --topic payments \
        --checkpoint /data/checkpoints/it

Broken version: windows_logged.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}", --max-records, "25"]
# setup:
#   postgres: |
#     create table windows (starts timestamp primary key, payments bigint, amount numeric(14, 2))
# sink:
#   postgres: windows
#   expected: |
#     select time_bucket(interval '10 seconds', event_time) as starts, count(*) as payments, sum(amount) as amount
#     from ledger where not _late group by 1
#   key: [starts]
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

PUT = """
    insert into windows (starts, payments, amount) values %s
    on conflict (starts) do update set payments = excluded.payments, amount = excluded.amount
"""


def batch(windows: DataFrame, number: int) -> None:
    """Write the windows that this batch has changed, with their totals so far."""
    stream.put(PUT, windows.selectExpr("string(window.start)", "payments", "amount").collect())


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
