"""Payments from Kafka into an Iceberg table, by its own streaming sink. BROKEN: each attempt makes a new checkpoint.

A query that begins a checkpoint has a new id, so no snapshot knows its batches. It reads the topic from the beginning,
and everything is appended again.

    spark-submit --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 lake_checkpoint_new.py \
        --bootstrap localhost:9092 --topic payments --warehouse /data/lake

Fixed version: lake_streamed.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --warehouse, "{iceberg.path}"]
# conf: {spark.jars: "{iceberg.jars}"}
# sink:
#   iceberg: shop.payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import tempfile

import lake


def main() -> None:
    args = lake.arguments(__doc__)
    payments = lake.stream(lake.session("lake_checkpoint_new", args), args)
    writer = payments.writeStream.format("iceberg").outputMode("append")
    checkpoint = tempfile.mkdtemp(prefix="payments-")
    writer.option("checkpointLocation", checkpoint).toTable(lake.TABLE).awaitTermination()


if __name__ == "__main__":
    main()
