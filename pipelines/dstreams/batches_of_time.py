"""What the programs of Spark Streaming (DStreams) in this folder share: arguments, the context, the way into Postgres.

Only the driver imports this file. Executors never see it: what runs there is an inner function, which Spark ships by
value. Spark keeps such functions in the checkpoint, so a program that goes on does what the first one was told.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import datetime
from typing import Any

import psycopg2
from psycopg2.extras import execute_values
from pyspark import RDD, SparkConf, SparkContext, TaskContext
from pyspark.sql import SparkSession
from pyspark.streaming import DStream, StreamingContext

COLUMNS = ("id", "account", "amount", "currency", "event_time")
INSERT = "insert into payments (id, account, amount, currency, event_time) values %s"
CLAIM = "insert into written (batch_time, partition) values (%s, %s) on conflict do nothing"
FIRST = "insert into began (batch_time) values (%s) on conflict do nothing"
LIBPQ = {"PGHOST": "host", "PGPORT": "port", "PGDATABASE": "dbname", "PGUSER": "user", "PGPASSWORD": "password"}
Save = Callable[[datetime, RDD[Any]], None]


def arguments(about: str | None, *more: str) -> argparse.Namespace:
    """The command line: the named extras, and how the context is made."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--interval", type=int, default=2, help="seconds between two batches")
    parser.add_argument("--log", action="store_true", help="with the receiver's write-ahead log")
    for name in more:
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def socket(args: argparse.Namespace, ssc: StreamingContext) -> DStream[Any]:
    """Lines off a socket, by a receiver that runs on an executor."""
    return ssc.socketTextStream(args.host, int(args.port))


def folder(args: argparse.Namespace, ssc: StreamingContext) -> DStream[Any]:
    """The lines of files that are moved into a folder once the program runs."""
    return ssc.textFileStream(f"file://{args.folder}")


def run(args: argparse.Namespace, build: Callable[[StreamingContext], object]) -> None:
    """Go on from the checkpoint, or begin: then `build` says what is done."""

    def create() -> StreamingContext:
        conf = SparkConf().set("spark.streaming.receiver.writeAheadLog.enable", str(args.log).lower())
        # A line is in the log once its block is cut.
        conf.set("spark.streaming.blockInterval", "50ms")
        ssc = StreamingContext(SparkContext(conf=conf), args.interval)
        build(ssc)
        return ssc

    ssc = StreamingContext.getOrCreate(args.checkpoint, create)
    ssc.start()
    ssc.awaitTermination()


def milliseconds(time: datetime) -> int:
    """A batch time as Spark names its checkpoint."""
    return round(time.timestamp() * 1000)


def login() -> dict[str, Any]:
    """How to reach Postgres, from libpq's PG* variables; PGOPTIONS has the schema."""
    where: dict[str, Any] = {key: os.environ[name] for name, key in LIBPQ.items() if name in os.environ}
    return {**where, "options": os.environ.get("PGOPTIONS", "")}


def appended() -> Save:
    """Writes the payments of each partition of a batch in one transaction."""
    where, insert, columns = login(), INSERT, COLUMNS

    def save(lines: Iterable[str]) -> None:
        import json

        rows = [tuple(json.loads(line)[column] for column in columns) for line in lines]
        with closing(psycopg2.connect(**where)) as database, database, database.cursor() as cursor:
            execute_values(cursor, insert, rows)

    def write(time: datetime, batch: RDD[Any]) -> None:
        batch.foreachPartition(save)

    return write


def written_once() -> Save:
    """The same, with the batch's time and the number of the partition, which is not written a second time."""
    where, insert, claim, columns = login(), INSERT, CLAIM, COLUMNS

    def write(time: datetime, batch: RDD[Any]) -> None:
        batch_time = round(time.timestamp() * 1000)

        def save(lines: Iterable[str]) -> None:
            import json

            task = TaskContext.get()
            rows = [tuple(json.loads(line)[column] for column in columns) for line in lines]
            with closing(psycopg2.connect(**where)) as database, database, database.cursor() as cursor:
                cursor.execute(claim, (batch_time, task.partitionId() if task else 0))
                if cursor.rowcount == 1 and rows:
                    execute_values(cursor, insert, rows)

        batch.foreachPartition(save)

    return write


def kept_by_id() -> Save:
    """Writes the payments of each partition of a batch in one transaction; those that are there stay as they are."""
    where, insert, columns = login(), f"{INSERT} on conflict (id) do nothing", COLUMNS

    def save(lines: Iterable[str]) -> None:
        import json

        rows = [tuple(json.loads(line)[column] for column in columns) for line in lines]
        with closing(psycopg2.connect(**where)) as database, database, database.cursor() as cursor:
            execute_values(cursor, insert, rows)

    def write(time: datetime, batch: RDD[Any]) -> None:
        batch.foreachPartition(save)

    return write


def windows(args: argparse.Namespace, lines: DStream[Any]) -> DStream[Any]:
    """Pairs of a key and a whole number for each window, which is two batches long and slides by one."""
    of, length, slide = args.of, 2 * args.interval, args.interval

    def payment(line: str) -> dict[str, Any]:
        import json

        found: dict[str, Any] = json.loads(line)
        return found

    cents = lines.map(lambda line: round(float(payment(line)["amount"]) * 100))
    if of == "count":
        return lines.countByWindow(length, slide).map(lambda count: ("all", count))
    if of == "values":
        return lines.map(lambda line: payment(line)["account"]).countByValueAndWindow(length, slide)
    if of == "sum":
        return cents.reduceByWindow(lambda a, b: a + b, None, length, slide).map(lambda total: ("all", total))
    if of == "inverse":
        added = cents.reduceByWindow(lambda a, b: a + b, lambda a, b: a - b, length, slide)
        return added.map(lambda total: ("all", total))
    return lines.window(length, slide).map(lambda line: (payment(line)["account"], 1))


def saved(sql: str, interval: int) -> Save:
    """Writes what a window comes to, on the driver, with the number of the batch in which it ends: batches are counted
    from the first one, whose time is kept beside. The numbers of a key are added up by a temporary table."""

    def write(time: datetime, window: RDD[Any]) -> None:
        spark = SparkSession.builder.getOrCreate()
        spark.createDataFrame(window, "key string, n bigint").createOrReplaceTempView("numbers")
        found = spark.sql("select key, sum(n) as n from numbers group by key having sum(n) > 0").collect()
        with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
            cursor.execute(FIRST, (milliseconds(time),))
            cursor.execute("select batch_time from began")
            ((began,),) = cursor.fetchall()
            batch = (milliseconds(time) - began) // (1000 * interval)
            if found:
                execute_values(cursor, sql, [(batch, row["key"], row["n"]) for row in found])

    return write
