"""Payments from Kafka into an Iceberg table, appended by `foreachBatch`. BROKEN: no snapshot says which batch it is.

Each append is one atomic commit. One that was committed, and whose offsets were not, runs again and is appended again.

    spark-submit --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 lake_appended.py \
        --bootstrap localhost:9092 --topic payments --warehouse /data/lake --checkpoint /data/checkpoints/payments

Fixed versions: lake_merged.py, lake_streamed.py
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
from pyspark.sql import DataFrame


def batch(payments: DataFrame, number: int) -> None:
    """Append one batch."""
    payments.writeTo(lake.TABLE).append()


def main() -> None:
    args = lake.arguments(__doc__, "checkpoint")
    payments = lake.stream(lake.session("lake_appended", args), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
