"""Payments from Kafka into Postgres, committed one row at a time. BROKEN: no transaction round the partition.

A task that dies half way leaves the rows it has written. Spark runs the task again, by itself when an executor dies
and after the restart when the driver dies, and those rows are there twice.

    spark-submit autocommit.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Fixed version: partition_ledger.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import common
import psycopg2
from pyspark.sql import DataFrame, Row

LOGIN = common.login()
COLUMNS = common.COLUMNS
INSERT = "insert into payments (id, account, amount, currency, event_time) values (%s, %s, %s, %s, %s)"


def save(rows: Iterator[Row]) -> None:
    """Insert each row in a transaction of its own."""
    with closing(psycopg2.connect(**LOGIN)) as database, database.cursor() as cursor:
        database.autocommit = True
        for row in rows:
            cursor.execute(INSERT, tuple(row[column] for column in COLUMNS))


def batch(payments: DataFrame, number: int) -> None:
    """Write one batch."""
    payments.foreachPartition(save)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("autocommit"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
