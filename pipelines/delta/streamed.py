"""Payments from Kafka into a Delta table, by Delta's own streaming sink. Holds: each commit names query and batch.

The table's log keeps, beside the files of a batch, the id of the query and the batch's number, in one atomic commit. A
batch that runs again finds its number there and is skipped. The id of the query is in the checkpoint.

    spark-submit --packages io.delta:delta-spark_4.1_2.13:4.4.0 streamed.py --bootstrap localhost:9092 \
        --topic payments --table /data/tables/payments --checkpoint /data/checkpoints/payments

Broken version: appended_unnumbered.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --table, "{delta.path}/payments",
#   --checkpoint, "{checkpoint}"]
# conf: {spark.jars: "{delta.jars}"}
# sink:
#   delta: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import tables


def main() -> None:
    args = tables.arguments(__doc__, "checkpoint")
    payments = tables.stream(tables.session("streamed"), args)
    query = payments.writeStream.format("delta").option("checkpointLocation", args.checkpoint).start(args.table)
    query.awaitTermination()


if __name__ == "__main__":
    main()
