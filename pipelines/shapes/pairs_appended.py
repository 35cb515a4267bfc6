"""Each payment of one topic with the one of another topic that has the next id, by an inner join of two streams,
appended ten at a time to a table in Postgres. BROKEN: a batch may come again.

A pair is written by the batch that takes its second half, and stays in the state of the join. A batch that is run again
begins with the state before it: it finds the same pairs, and the table gets those twice that it had got.

    spark-submit pairs_appended.py --bootstrap localhost:9092 --topics shop,web --checkpoint /data/checkpoints/it

Fixed version: pairs_kept.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topics, "{topics}", --checkpoint, "{checkpoint}"]
# input: {workload: transactions, records: 600, topics: 2, partitions: 2}
# setup:
#   postgres: |
#     create table pairs (id bigint, other bigint, amount numeric(14, 2))
# sink:
#   postgres: pairs
#   expected: |
#     select a.id, b.id as other, a.amount + b.amount as amount
#     from ledger a join ledger b on b.id = a.id + 1 where a._partition < 2 and b._partition >= 2
#   key: [id]
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

PUT = "insert into pairs (id, other, amount) values %s"
PAGE = 10


def batch(pairs: DataFrame, number: int) -> None:
    """Write the pairs that this batch has completed."""
    rows = pairs.collect()
    for at in range(0, len(rows), PAGE):
        stream.put(PUT, rows[at : at + PAGE])


def main() -> None:
    args = stream.arguments(__doc__, topic="topics")
    first, second = (
        stream.payments(args, topic).withWatermark("event_time", "1 hour").alias(side)
        for topic, side in zip(args.topics.split(","), "ab", strict=True)
    )
    near = "b.event_time between a.event_time - interval 1 hour and a.event_time + interval 1 hour"
    pairs = first.join(second, expr(f"b.id = a.id + 1 and {near}"))
    rows = pairs.selectExpr("a.id", "b.id as other", "a.amount + b.amount as amount")
    writing = rows.writeStream.outputMode("append").foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
