"""Payments from Kafka into Postgres, one transaction for each batch, which the driver keeps open while it works.
BROKEN: where the server has ended the transaction, the error is logged, and the batch passed over.

A server ends a session that stands idle in a transaction for too long. A driver that was paused in between finds it
gone, and the payments of the batch with it.

    spark-submit upsert_expired.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Fixed version: upsert_retried.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import common
import psycopg2
import upsert_retried
from pyspark.sql import DataFrame


def batch(payments: DataFrame, number: int) -> None:
    """Write one batch."""
    values = [tuple(row[column] for column in common.COLUMNS) for row in payments.collect()]
    try:
        upsert_retried.write(values, number)
    except psycopg2.Error as failure:
        print(f"not written: {failure}", flush=True)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("upsert_expired"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
