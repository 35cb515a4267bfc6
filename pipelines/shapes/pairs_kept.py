"""Every two payments of an account, by an inner join of two streams, into a table with a key in Postgres. Holds: the
table drops what comes again.

A pair is named by its first half. It is written in any number of transactions, and is the same whenever it comes again.

    spark-submit pairs_kept.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Broken twin: pairs_appended.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table pairs (id bigint primary key, other bigint, account text, amount numeric(14, 2))
# sink:
#   postgres: pairs
#   effect: |
#     select a.id, b.id as other, account, a.amount + b.amount as amount
#     from ledger a join ledger b using (account) where a.seq % 2 = 1 and b.seq = a.seq + 1
#   key: [id]
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

PUT = "insert into pairs (id, other, account, amount) values %s on conflict do nothing"
PAGE = 10


def batch(pairs: DataFrame, number: int) -> None:
    """Write the pairs that this batch has completed."""
    rows = pairs.collect()
    for at in range(0, len(rows), PAGE):
        stream.put(PUT, rows[at : at + PAGE])


def main() -> None:
    args = stream.arguments(__doc__)
    # A stream of its own for each side: only what is read twice is joined as two streams.
    first, second = (
        stream.payments(args).withWatermark("event_time", "1 hour").where(f"seq % 2 = {odd}").alias(side)
        for odd, side in ((1, "a"), (0, "b"))
    )
    near = "b.event_time between a.event_time - interval 1 hour and a.event_time + interval 1 hour"
    pairs = first.join(second, expr(f"a.account = b.account and b.seq = a.seq + 1 and {near}"))
    rows = pairs.selectExpr("a.id", "b.id as other", "a.account", "a.amount + b.amount as amount")
    writing = rows.writeStream.outputMode("append").foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
