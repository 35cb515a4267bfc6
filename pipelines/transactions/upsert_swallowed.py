"""Payments from Kafka into Postgres, each under its own id. BROKEN: what the server refuses is logged, and the
batch goes on.

A server that is away for a moment costs the payments of that moment: Spark takes the batch for done.

    spark-submit upsert_swallowed.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Fixed version: upsert.py, where the error ends the task, and with it the query
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

from collections.abc import Iterator

import common
import psycopg2
from pyspark.sql import DataFrame, Row

INSERT = """
    insert into payments (id, account, amount, currency, event_time) values %s
    on conflict (id) do update set
        account = excluded.account, amount = excluded.amount,
        currency = excluded.currency, event_time = excluded.event_time
"""
SAVE = common.into(INSERT)


def save(rows: Iterator[Row]) -> None:
    """Write one partition in one transaction."""
    try:
        SAVE(rows)
    except psycopg2.Error as failure:
        print(f"not written: {failure}", flush=True)


def batch(payments: DataFrame, number: int) -> None:
    """Write one batch."""
    payments.foreachPartition(save)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("upsert_swallowed"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
