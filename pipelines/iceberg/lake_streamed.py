"""Payments from Kafka into an Iceberg table, by Iceberg's own streaming sink. Holds: a snapshot names query and epoch.

Each commit keeps the id of the query and the number of the batch in its snapshot's summary. A batch that runs again
finds its number there and is skipped. The id of the query is in the checkpoint.

    spark-submit --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 lake_streamed.py \
        --bootstrap localhost:9092 --topic payments --warehouse /data/lake --checkpoint /data/checkpoints/payments

Broken versions: lake_appended.py, lake_checkpoint_new.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --warehouse, "{iceberg.path}",
#   --checkpoint, "{checkpoint}"]
# conf: {spark.jars: "{iceberg.jars}"}
# sink:
#   iceberg: shop.payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import lake


def main() -> None:
    args = lake.arguments(__doc__, "checkpoint")
    payments = lake.stream(lake.session("lake_streamed", args), args)
    writer = payments.writeStream.format("iceberg").outputMode("append")
    writer.option("checkpointLocation", args.checkpoint).toTable(lake.TABLE).awaitTermination()


if __name__ == "__main__":
    main()
