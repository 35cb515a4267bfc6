"""Payments from Kafka into Postgres, one transaction for each batch, which the driver keeps open while it works.
Holds: where the server has ended the transaction, the batch is written again.

A server ends a session that stands idle in a transaction for too long. A driver that was paused in between, by a
collection of garbage or a virtual machine that moves, finds it gone. Nothing of the batch was kept then.

    spark-submit upsert_retried.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Broken version: upsert_expired.py
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

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import common
import psycopg2
import upsert
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame

from harness import failpoint

IDLE = "set idle_in_transaction_session_timeout = '3s'"


def write(values: Sequence[tuple[Any, ...]], number: int) -> None:
    """Write one batch in one transaction. Raises psycopg2.Error."""
    with closing(psycopg2.connect(**common.login())) as database, database, database.cursor() as cursor:
        cursor.execute(IDLE)
        execute_values(cursor, upsert.INSERT, values)
        failpoint.reach("rows-written", batch=number)


def batch(payments: DataFrame, number: int) -> None:
    """Write one batch, in a second session if the first one was ended."""
    values = [tuple(row[column] for column in common.COLUMNS) for row in payments.collect()]
    try:
        write(values, number)
    except psycopg2.Error as failure:
        print(f"again: {failure}", flush=True)
        write(values, number)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("upsert_retried"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
