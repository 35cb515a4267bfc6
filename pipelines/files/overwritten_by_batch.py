"""Payments from Kafka into Parquet files, one for each batch and partition of the topic. Holds: it is written over.

A batch that runs again has the same number and the same offsets. So each of its files gets the same name and the same
payments, whatever was there before. The name must hold Kafka's partition and not the number of the task.

    spark-submit overwritten_by_batch.py --bootstrap localhost:9092 --topic payments --output /data/payments \
        --checkpoint /data/checkpoints/payments

Broken version: appended_by_uuid.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --output, "{files.path}/payments",
#   --checkpoint, "{checkpoint}"]
# sink:
#   files: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import output
from pyspark.sql import DataFrame, Row


def main() -> None:
    args = output.arguments(__doc__, "checkpoint")
    write = output.writer(args.output)

    def batch(payments: DataFrame, number: int) -> None:
        """Write one batch over."""

        def save(rows: Iterator[Row]) -> None:
            """Write the rows of one task into the files of their partitions."""
            found = defaultdict(list)
            for row in rows:
                found[row["part"]].append(row)
            for part, its in found.items():
                write(its, f"batch-{number:06}-{part:03}.parquet")

        payments.foreachPartition(save)

    query = output.stream(args).writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
