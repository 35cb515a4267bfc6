"""Payments in windows of ten seconds, in update mode, into Postgres. Holds: a window's total is written over.

The totals are Spark's state, not the table's. State and offsets belong to the same batch: a batch that is run again
begins with the state before it, and comes to the same totals. Unlike a counter in the table (errors_added.py) it
may be written as often as it likes.

    spark-submit windows_updated.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Broken version: windows_added.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table windows (starts timestamp primary key, payments bigint, amount numeric(14, 2))
# sink:
#   postgres: windows
#   expected: |
#     select time_bucket(interval '10 seconds', event_time) as starts, count(*) as payments, sum(amount) as amount
#     from ledger group by 1
#   key: [starts]
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
        .groupBy(f.window("event_time", "10 seconds"))
        .agg(f.count("*").alias("payments"), f.sum("amount").alias("amount"))
    )
    writing = windows.writeStream.outputMode("update").foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
