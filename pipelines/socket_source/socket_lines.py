"""What the programs of this folder share: arguments, the stream of payments off a socket, and the way into Postgres.

Only the driver imports this file. Executors never see it: `into` returns an inner function, which Spark ships by value.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame, Row, SparkSession

PAYMENT = "id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz"
COLUMNS = ("id", "account", "amount", "currency", "event_time")
LIBPQ = {"PGHOST": "host", "PGPORT": "port", "PGDATABASE": "dbname", "PGUSER": "user", "PGPASSWORD": "password"}


def arguments(about: str | None, *more: str) -> argparse.Namespace:
    """The command line: who speaks, and the named extras."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True, help="where a server sends a payment in JSON on each line")
    for name in more:
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def stream(args: argparse.Namespace, name: str) -> DataFrame:
    """The lines as a stream of payments."""
    spark = SparkSession.builder.appName(name).getOrCreate()
    lines = spark.readStream.format("socket").option("host", args.host).option("port", args.port).load()
    return lines.selectExpr(f"from_json(value, '{PAYMENT}') as payment").select("payment.*")


def into(sql: str) -> Callable[[Iterator[Row]], None]:
    """A writer for `foreachPartition`: the rows of a partition in one transaction. The address is the driver's, from
    libpq's PG* variables; PGOPTIONS has the schema."""
    where: dict[str, Any] = {key: os.environ[name] for name, key in LIBPQ.items() if name in os.environ}
    where["options"] = os.environ.get("PGOPTIONS", "")

    def save(rows: Iterator[Row]) -> None:
        values = [tuple(row[column] for column in COLUMNS) for row in rows]
        with closing(psycopg2.connect(**where)) as database, database, database.cursor() as cursor:
            execute_values(cursor, sql, values)

    return save
