"""Payments from Kafka into a Delta table by `foreachBatch`, each batch numbered. Holds: Delta skips a repetition.

`txnAppId` and `txnVersion` go into the same commit as the files. An append under a version that the table has already
seen of this application is skipped.

    spark-submit --packages io.delta:delta-spark_4.1_2.13:4.4.0 appended_numbered.py --bootstrap localhost:9092 \
        --topic payments --table /data/tables/payments --checkpoint /data/checkpoints/payments

The numbers belong to the checkpoint.

Broken versions: appended_unnumbered.py, checkpoint_new.py
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

APPLICATION = "payments"


def main() -> None:
    args = tables.arguments(__doc__, "checkpoint")

    def batch(payments: DataFrame, number: int) -> None:
        """Append one batch, unless the table has it."""
        named = payments.write.format("delta").option("txnAppId", APPLICATION).option("txnVersion", number)
        named.mode("append").save(args.table)

    payments = tables.stream(tables.session("appended_numbered"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
