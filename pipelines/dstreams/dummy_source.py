"""Payments off a receiver of one's own with DStreams, which numbers them in memory and takes the time. BROKEN without a
log.

What the receiver has stored is a block in an executor's memory, with a copy on another one if there is one, and
executors go with their driver. A restart does the last batch again, and it comes again empty: a line in `written` keeps
that from mattering. What was stored for the next batch is lost, and the counter restarts. With the write-ahead log
(`--log`) all that was stored comes again, with the numbers and the times that it had.

Each batch becomes a DataFrame and a temporary table, as in the article's example, and what a query over that has goes
into Postgres in one transaction with the batch's time.

    spark-submit dummy_source.py --host localhost --port 9999 --checkpoint /data/checkpoints/payments

Fixed version: the log (`--log`)
"""

# /// onceproof
# args: [--host, "{socket.host}", --port, "{socket.port}", --checkpoint, "{checkpoint}"]
# progress: dstreams
# conf: {spark.sql.shuffle.partitions: 1}
# setup:
#   postgres: |
#     create table payments (
#       value bigint, taken bigint,
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     );
#     create table written (batch_time bigint primary key)
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
import receivers
from psycopg2.extras import execute_values
from pyspark import RDD
from pyspark.sql import SparkSession
from pyspark.streaming import StreamingContext

CLAIM = "insert into written (batch_time) values (%s) on conflict do nothing"
INSERT = "insert into payments (value, taken, id, account, amount, currency, event_time) values %s"


def write(time: datetime, batch: RDD[Any]) -> None:
    """Write one batch, unless it is there."""
    spark = SparkSession.builder.getOrCreate()
    values = batch.map(lambda each: each.split("\t", 2)).map(lambda each: (int(each[0]), int(each[1]), each[2]))
    spark.createDataFrame(values, "value bigint, time bigint, line string").createOrReplaceTempView("demo_numbers")
    found = spark.sql("select * from demo_numbers").collect()
    rows = [(each["value"], each["time"], *_payment(each["line"])) for each in found]
    with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
        cursor.execute(CLAIM, (common.milliseconds(time),))
        if cursor.rowcount == 1 and rows:
            execute_values(cursor, INSERT, rows)


def _payment(line: str) -> tuple[Any, ...]:
    payment = json.loads(line)
    return tuple(payment[column] for column in common.COLUMNS)


def main() -> None:
    args = common.arguments(__doc__, "host", "port")

    def build(ssc: StreamingContext, receiver: Any) -> None:
        receiver.reads(args.host, int(args.port))
        receivers.stream(ssc, receiver).foreachRDD(write)

    receivers.run(args, "DummySource.java", build)


if __name__ == "__main__":
    main()
