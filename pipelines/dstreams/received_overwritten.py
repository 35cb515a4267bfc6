"""Payments off a socket with DStreams: a batch overwrites what Postgres has of its time. BROKEN without a log.

Writing a batch twice leaves it there once: the sink is idempotent, as long as the batch comes again with the same
lines. With the write-ahead log (`--log`) it does. Without it a restart does the last batch again, though it was done,
and finds no block of it: the empty batch overwrites the good one.

    spark-submit received_overwritten.py --host localhost --port 9999 --checkpoint /data/checkpoints/payments

Fixed version: received_written_once.py, with the log; or the log (`--log`) alone
"""

# /// onceproof
# args: [--host, "{socket.host}", --port, "{socket.port}", --checkpoint, "{checkpoint}"]
# progress: dstreams
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp,
#       batch_time bigint
#     )
# sink:
#   postgres: select id, account, amount, currency, event_time from payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# input: {source: socket}
# ///

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime
from typing import Any

import batches_of_time as common
import psycopg2
from psycopg2.extras import execute_values
from pyspark import RDD
from pyspark.streaming import StreamingContext

INSERT = "insert into payments (id, account, amount, currency, event_time, batch_time) values %s"


def overwrite(time: datetime, batch: RDD[Any]) -> None:
    """Put the rows of one batch in the place of those of its time."""
    batch_time = common.milliseconds(time)
    found = [json.loads(line) for line in batch.collect()]
    rows = [(*(each[column] for column in common.COLUMNS), batch_time) for each in found]
    with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
        cursor.execute("delete from payments where batch_time = %s", (batch_time,))
        if rows:
            execute_values(cursor, INSERT, rows)


def main() -> None:
    args = common.arguments(__doc__, "host", "port")

    def build(ssc: StreamingContext) -> None:
        common.socket(args, ssc).foreachRDD(overwrite)

    common.run(args, build)


if __name__ == "__main__":
    main()
