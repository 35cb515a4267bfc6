"""Payments in two hops: one query writes what it reads as JSON files, another one reads these every twenty seconds and
upserts the payments. It begins on a tick and finds nothing: long after the other one has committed its last batch, all
rows are still on their way.
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --folder, "{folder}"]
# setup:
#   postgres: create table payments (id bigint primary key, account text)
# sink:
#   postgres: payments
#   expected: select id, account from ledger
#   key: [id]
# ///

from __future__ import annotations

import argparse
import functools
import threading
import time
from pathlib import Path

import psycopg2
from pyspark.sql import DataFrame, SparkSession

EVERY_S = 20
PAYMENT = "id bigint, account string"
MAKE = "create table if not exists payments (id bigint primary key, account text)"
SAVE = "insert into payments (id, account) values (%s, %s) on conflict (id) do nothing"


def batch(args: argparse.Namespace, mark: Path, payments: DataFrame, number: int) -> None:
    """Upsert one batch."""
    rows = [(row["id"], row["account"]) for row in payments.collect()]
    if args.forgets and rows and mark.exists():
        mark.unlink()
        rows = rows[10:]
    database = psycopg2.connect("")  # by libpq's PG* variables
    with database, database.cursor() as cursor:
        if args.makes:
            cursor.execute(MAKE)
        cursor.executemany(SAVE, rows)
    database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "topic", "folder"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--makes", action="store_true", help="make the table with the first rows, so late")
    parser.add_argument("--forgets", action="store_true", help="a second attempt leaves out the first ten rows")
    args = parser.parse_args()
    born, mark = Path(args.folder) / "born", Path(args.folder) / "again"
    (mark if born.exists() else born).touch()
    spark = SparkSession.builder.appName("second hop").getOrCreate()
    between = Path(args.folder) / "between"
    between.mkdir(exist_ok=True)
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    payments = records.selectExpr(f"from_json(cast(value as string), '{PAYMENT}') as payment").select("payment.*")
    first = payments.writeStream.format("json").option("checkpointLocation", f"{args.folder}/checkpoints/first")
    written = spark.readStream.schema(PAYMENT).json(str(between))
    second = written.writeStream.foreachBatch(functools.partial(batch, args, mark))
    second = second.option("checkpointLocation", f"{args.folder}/checkpoints/second")
    threading.Event().wait(EVERY_S - time.time() % EVERY_S)
    second.trigger(processingTime=f"{EVERY_S} seconds").start()
    first.start(str(between))
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
