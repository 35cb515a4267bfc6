"""Payments from Kafka merged into a Delta table, each under its own id. Holds: the sink is idempotent.

A batch that runs again finds each payment there and writes the same row again.

    spark-submit --packages io.delta:delta-spark_4.1_2.13:4.4.0 merged.py --bootstrap localhost:9092 --topic payments \
        --table /data/tables/payments --checkpoint /data/checkpoints/payments

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
from pyspark.sql import DataFrame

MAKE = "create table if not exists delta.`{table}` ({columns}) using delta"
MERGE = """
    merge into delta.`{table}` as there using batch on there.id = batch.id
    when matched then update set *
    when not matched then insert *
"""


def main() -> None:
    args = tables.arguments(__doc__, "checkpoint")
    spark = tables.session("merged")
    spark.sql(MAKE.format(table=args.table, columns=tables.PAYMENT))

    def batch(payments: DataFrame, number: int) -> None:
        """Merge one batch; again and again comes to the same."""
        payments.createOrReplaceTempView("batch")
        payments.sparkSession.sql(MERGE.format(table=args.table))

    query = tables.stream(spark, args).writeStream.foreachBatch(batch)
    query.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
