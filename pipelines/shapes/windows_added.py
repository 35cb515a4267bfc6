"""Payments in windows of ten seconds, each batch counted by itself, into Postgres. BROKEN: the table adds, also what a
batch says again.

The totals are the table's, and Spark keeps no state. A batch that is run again counts the same payments, and they are
added again.

    spark-submit windows_added.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Fixed version: windows_updated.py
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

ADD = """
    insert into windows (starts, payments, amount) values %s
    on conflict (starts) do update set
        payments = windows.payments + excluded.payments, amount = windows.amount + excluded.amount
"""


def batch(payments: DataFrame, number: int) -> None:
    """Add what this batch has to its windows."""
    windows = payments.groupBy(f.window("event_time", "10 seconds")).agg(f.count("*"), f.sum("amount"))
    rows = windows.toDF("window", "payments", "amount").selectExpr("string(window.start)", "payments", "amount")
    stream.put(ADD, rows.collect())


def main() -> None:
    args = stream.arguments(__doc__)
    writing = stream.payments(args).writeStream.outputMode("update").foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
