"""What the programs that call a procedure share: arguments, the stream of payments, how a partition is handed over.

Only the driver imports this file. Executors never see it: the writers are inner functions, which Spark ships by value.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
from pyspark.sql import DataFrame, Row, SparkSession

PAYMENT = "id bigint, account string, amount decimal(12, 2)"
LIBPQ = {
    "PGHOST": "host",
    "PGPORT": "port",
    "PGDATABASE": "dbname",
    "PGUSER": "user",
    "PGPASSWORD": "password",
    "PGPASSFILE": "passfile",
    "PGOPTIONS": "options",
}


def arguments(about: str | None, *more: str) -> argparse.Namespace:
    """The command line: where Kafka is, which topic, how large a batch may be, and the named extras."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", "topic", "checkpoint", *more):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    return parser.parse_args()


def stream(args: argparse.Namespace) -> DataFrame:
    """The topic as a stream of payments, each with the partition and offset that it came from."""
    records = (
        SparkSession.builder.appName("procedures")
        .getOrCreate()
        .readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .load()
    )
    parsed = records.selectExpr("partition as part", "offset as off", f"from_json(string(value), '{PAYMENT}') as p")
    return parsed.select("part", "off", "p.*")


def postgres() -> dict[str, Any]:
    """How to reach Postgres, from libpq's PG* variables: executors have not got the driver's environment."""
    return {key: os.environ[name] for name, key in LIBPQ.items() if name in os.environ}


def mariadb() -> dict[str, Any]:
    """How to reach MariaDB, from MYSQL_* variables."""
    return {
        "host": os.environ["MYSQL_HOST"],
        "port": int(os.environ["MYSQL_TCP_PORT"]),
        "user": os.environ["MYSQL_USER"],
        "password": os.environ["MYSQL_PWD"],
        "database": os.environ["MYSQL_DATABASE"],
        "charset": "utf8mb4",
        "autocommit": True,
    }


def in_postgres(call: str) -> Callable[[Iterator[Row]], None]:
    """A writer for `foreachPartition`: one call for the whole partition, which the server commits by itself."""
    where = postgres()

    def save(rows: Iterator[Row]) -> None:
        with closing(psycopg2.connect(**where)) as database, database.cursor() as cursor:
            database.autocommit = True
            cursor.execute(call, (json.dumps([row.asDict() for row in rows], default=str),))

    return save


def in_mariadb(call: str) -> Callable[[Iterator[Row]], None]:
    """The same for MariaDB; the procedure commits its own transaction."""
    where = mariadb()

    def save(rows: Iterator[Row]) -> None:
        # Where it is needed: a cluster without MariaDB has no client of it.
        import pymysql

        with closing(pymysql.connect(**where)) as database, database.cursor() as cursor:
            cursor.execute(call, (json.dumps([row.asDict() for row in rows], default=str),))

    return save


def write_rows(args: argparse.Namespace, writer: Any) -> None:
    """Each row by a `foreach` writer, until the program is ended. A batch has eight tasks at the program's first start
    and five later: the file `args.starts` stands for a cluster that comes back smaller."""
    starts = Path(args.starts)
    before = starts.exists()
    starts.touch()
    payments = stream(args).repartition(5 if before else 8, "account")
    payments.writeStream.foreach(writer).option("checkpointLocation", args.checkpoint).start().awaitTermination()


def write(args: argparse.Namespace, save: Callable[[Iterator[Row]], None]) -> None:
    """Each batch by `save`, a task for each partition of Kafka, until the program is ended."""

    def batch(payments: DataFrame, number: int) -> None:
        payments.foreachPartition(save)

    query = stream(args).writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()
