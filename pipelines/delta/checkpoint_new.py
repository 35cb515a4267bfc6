"""Payments from Kafka into a Delta table, each batch under its number. BROKEN: a new checkpoint, the same `txnAppId`.

The checkpoint is in a temporary folder, so the next attempt has none. It reads the topic from the beginning and
counts its batches from 0, while the table knows these numbers of the application: Delta skips the new batches 0, 1, 2 …
without a word, also the records in them that no attempt has written.

    spark-submit --packages io.delta:delta-spark_4.1_2.13:4.4.0 checkpoint_new.py --bootstrap localhost:9092 \
        --topic payments --table /data/tables/payments

Fixed version: appended_numbered.py
"""

# /// onceproof
# # Without a limit: the first batch of the new checkpoint has all there is. Small ones would be cut otherwise than
# # those of before, and which records are lost or doubled would change from run to run.
# args:
#   [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --table, "{delta.path}/payments",
#    --max-records, "100000"]
# conf: {spark.jars: "{delta.jars}"}
# sink:
#   delta: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import tempfile

import tables
from pyspark.sql import DataFrame

APPLICATION = "payments"


def main() -> None:
    args = tables.arguments(__doc__)

    def batch(payments: DataFrame, number: int) -> None:
        """Append one batch, unless the table has its number."""
        named = payments.write.format("delta").option("txnAppId", APPLICATION).option("txnVersion", number)
        named.mode("append").save(args.table)

    payments = tables.stream(tables.session("checkpoint_new"), args)
    checkpoint = tempfile.mkdtemp(prefix="payments-")
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
