"""Payments from Kafka into Postgres, each partition of a batch claimed before it is written: at most once.

The line (batch, partition) is committed in `claimed` before the first row. What comes second, a task run again or a
batch run again, finds the line and writes nothing, also where the first one died half way: what it had not written by
then is lost. partition_ledger.py has the line in the transaction of the rows, and loses nothing.

While the server is away a task waits for it, so that the query does not end with it.

    spark-submit claimed_first.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Broken version: autocommit.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     );
#     create table claimed (batch bigint, partition int, primary key (batch, partition))
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from time import monotonic

import common
import psycopg2
from psycopg2.extensions import connection
from pyspark.sql import DataFrame, Row

LOGIN = common.login()
COLUMNS = common.COLUMNS
CLAIM = "insert into claimed (batch, partition) values (%s, %s) on conflict do nothing"
INSERT = "insert into payments (id, account, amount, currency, event_time) values (%s, %s, %s, %s, %s)"
PATIENCE_S = 60.0
PAUSE_S = 0.2


def connected() -> connection:
    """A connection, once the server is there; the last error if it is not in time."""
    end = monotonic() + PATIENCE_S
    while True:
        try:
            found: connection = psycopg2.connect(**LOGIN)
            return found
        except psycopg2.OperationalError:
            if monotonic() > end:
                raise
        threading.Event().wait(PAUSE_S)


def saver(number: int) -> Callable[[Iterator[Row]], None]:
    """The writer for batch `number`."""

    def save(rows: Iterator[Row]) -> None:
        payments = list(rows)
        if not payments:
            return
        with closing(connected()) as database, database.cursor() as cursor:
            database.autocommit = True
            cursor.execute(CLAIM, (number, payments[0]["partition"]))
            for row in payments if cursor.rowcount == 1 else ():
                cursor.execute(INSERT, tuple(row[column] for column in COLUMNS))

    return save


def batch(payments: DataFrame, number: int) -> None:
    """Write one batch: each partition once at the most."""
    payments.foreachPartition(saver(number))


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("claimed_first"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
