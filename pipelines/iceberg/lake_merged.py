"""Payments from Kafka merged into an Iceberg table, each under its own id. Holds: the sink is idempotent.

A batch that runs again finds each payment there and writes the same row again.

    spark-submit --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 lake_merged.py \
        --bootstrap localhost:9092 --topic payments --warehouse /data/lake --checkpoint /data/checkpoints/payments

Broken version: lake_appended.py
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

MERGE = f"""
    merge into {lake.TABLE} as there using batch on there.id = batch.id
    when matched then update set *
    when not matched then insert *
"""


def batch(payments: DataFrame, number: int) -> None:
    """Merge one batch; again and again comes to the same."""
    payments.createOrReplaceTempView("batch")
    payments.sparkSession.sql(MERGE)


def main() -> None:
    args = lake.arguments(__doc__, "checkpoint")
    payments = lake.stream(lake.session("lake_merged", args), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
