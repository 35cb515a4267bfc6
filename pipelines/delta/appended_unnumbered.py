"""Payments from Kafka into a Delta table, appended by `foreachBatch`. BROKEN: nothing in the table says which batch.

Each append is one atomic commit, so a batch that was cut before it leaves files that no reader sees. But one that was
committed, and whose offsets were not, runs again and is appended again.

    spark-submit --packages io.delta:delta-spark_4.1_2.13:4.4.0 appended_unnumbered.py --bootstrap localhost:9092 \
        --topic payments --table /data/tables/payments --checkpoint /data/checkpoints/payments

Fixed versions: appended_numbered.py, merged.py, streamed.py
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


def main() -> None:
    args = tables.arguments(__doc__, "checkpoint")

    def batch(payments: DataFrame, number: int) -> None:
        """Append one batch."""
        payments.write.format("delta").mode("append").save(args.table)

    payments = tables.stream(tables.session("appended_unnumbered"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
