"""What the programs of this folder share: arguments, and the stream of payments out of files.

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


def arguments(about: str | None) -> argparse.Namespace:
    """The command line: the folder that files are dropped into, and the checkpoint."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True, help="where the files are dropped, a payment in JSON on each line")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--text", action="store_true", help="read as lines of text, each parsed by the program")
    parser.add_argument("--parquet", action="store_true", help="Parquet: the payment in JSON is its column `value`")
    parser.add_argument("--max-files", type=int, default=5, help="files in one batch at most")
    parser.add_argument("--clean", choices=("off", "delete"), default="off", help="what becomes of files that are done")
    return parser.parse_args()


def stream(args: argparse.Namespace, name: str) -> DataFrame:
    """The files as a stream of payments. To Spark a line that is cut off is a row of NULLs; such a row is left out."""
    spark = SparkSession.builder.appName(name).getOrCreate()
    reader = spark.readStream.option("maxFilesPerTrigger", args.max_files).option("cleanSource", args.clean)
    if args.text:
        text = reader.text(args.folder)
    elif args.parquet:
        text = reader.schema("value binary").parquet(args.folder).selectExpr("cast(value as string) as value")
    else:
        return reader.schema(PAYMENT).json(args.folder).where("id is not null")
    parsed = text.selectExpr(f"from_json(value, '{PAYMENT}') as payment").select("payment.*")
    return parsed.where("id is not null")


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
