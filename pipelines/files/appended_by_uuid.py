"""Payments from Kafka into Parquet files, a new one for each task of each batch. BROKEN: its name is a uuid.

When the driver dies after the files are there and before Spark has written `commits/N`, the restarted query runs batch
N again, and writes the same payments into files of other names.

    spark-submit appended_by_uuid.py --bootstrap localhost:9092 --topic payments --output /data/payments \
        --checkpoint /data/checkpoints/payments

Fixed version: overwritten_by_batch.py
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

import uuid
from collections.abc import Iterator

import output
from pyspark.sql import DataFrame, Row


def main() -> None:
    args = output.arguments(__doc__, "checkpoint")
    write = output.writer(args.output)

    def save(rows: Iterator[Row]) -> None:
        """Write the rows of one task into a file of its own."""
        found = list(rows)
        if found:
            write(found, f"{uuid.uuid4()}.parquet")

    def batch(payments: DataFrame, number: int) -> None:
        """Append one batch."""
        payments.foreachPartition(save)

    query = output.stream(args).writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
