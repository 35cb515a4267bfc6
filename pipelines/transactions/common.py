"""What the payment pipelines share: arguments, session, the stream of payments, and one way to write a partition.

Only the driver imports this file. Executors never see it: `into` returns an inner function, which Spark ships by value.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame, Row, SparkSession

PAYMENT = "id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz"
COLUMNS = ("id", "account", "amount", "currency", "event_time")
SOURCE = ("partition", "offset")
SECURED = ("SECURITY_PROTOCOL", "SASL_MECHANISM", "SASL_JAAS_CONFIG", "SSL_TRUSTSTORE_TYPE", "SSL_TRUSTSTORE_LOCATION")
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
    parser.add_argument("--bootstrap", required=True, help="Kafka's host:port")
    parser.add_argument("--topic", required=True, help="or several with commas, or a pattern with --by-pattern")
    parser.add_argument("--by-pattern", action="store_true", help="also topics that are created while it runs")
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    parser.add_argument("--login", default="KAFKA", help="how the variables begin that have TLS and login, if any")
    for name in more:
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def secured(prefix: str) -> dict[str, str]:
    """Spark's options for TLS and login, from variables: KAFKA_SASL_JAAS_CONFIG is kafka.sasl.jaas.config. No password
    is in the command line, and without the variables the broker asks for nothing."""
    named = ((name, os.environ.get(f"{prefix}_{name}")) for name in SECURED)
    return {f"kafka.{name.lower().replace('_', '.')}": value for name, value in named if value}


def session(name: str) -> SparkSession:
    """The Spark session; the master comes from spark-submit."""
    return SparkSession.builder.appName(name).config("spark.sql.shuffle.partitions", "3").getOrCreate()


def payments(records: DataFrame) -> DataFrame:
    """Kafka records as payments, each with the partition and offset that it came from."""
    parsed = records.selectExpr(f"from_json(cast(value as string), '{PAYMENT}') as payment", *SOURCE)
    return parsed.select("payment.*", *SOURCE)


def stream(spark: SparkSession, args: argparse.Namespace, *, start: str = "earliest") -> DataFrame:
    """The topic as a stream of payments."""
    return payments(
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribePattern" if args.by_pattern else "subscribe", args.topic)
        .option("startingOffsets", start)
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .options(**secured(args.login))
        .load()
    )


def login() -> dict[str, Any]:
    """How to reach Postgres, from libpq's PG* variables: executors have not got the driver's environment."""
    return {key: os.environ[name] for name, key in LIBPQ.items() if name in os.environ}


def into(sql: str, columns: Sequence[str] = COLUMNS, **address: Any) -> Callable[[Iterator[Row]], None]:
    """A writer for `foreachPartition`: the rows of a partition go to `sql` in one transaction, all or none.

    `sql` is an insert with `values %s`; `address` is psycopg2.connect's, by default the main database."""
    where = address or login()

    def save(rows: Iterator[Row]) -> None:
        values = [tuple(row[column] for column in columns) for row in rows]
        with closing(psycopg2.connect(**where)) as database, database, database.cursor() as cursor:
            execute_values(cursor, sql, values)

    return save


def stoppable(save: Callable[[Iterator[Row]], None], batch: int | None = None) -> Callable[[Iterator[Row]], None]:
    """The same with a failpoint after the commit: no outside event says that the server has the rows of a partition,
    and Spark does not know yet that its task is done. Spark knows the batch, unless the program counts them itself."""

    def saved(rows: Iterator[Row]) -> None:
        from harness import failpoint

        save(rows)
        if batch is None:
            failpoint.reach_in_task("partition-committed")
        else:
            failpoint.reach("partition-committed", batch=batch)

    return saved
