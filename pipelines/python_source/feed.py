"""What the programs of this folder share: a Python data source over a feed of numbered records, and ways into Postgres.

    GET URL/end                        how many records there are
    GET URL/records?start=10&end=20    the records 10 to 19, a payment in JSON on each line

Spark starts Python processes of its own for the source, beside the driver and the executors, and none of them has this
folder on its path: so the module is shipped by value.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.request import urlopen

import psycopg2
from psycopg2.extras import execute_values
from pyspark import cloudpickle
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
PAYMENT = "id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz"
COLUMNS = ("id", "account", "amount", "currency", "event_time")
LIBPQ = {"PGHOST": "host", "PGPORT": "port", "PGDATABASE": "dbname", "PGUSER": "user", "PGPASSWORD": "password"}
PARTS = 4
"""Partitions of a batch."""


@dataclass
class Numbers(InputPartition):
    """The records of one partition."""

    start: int
    end: int


class FeedReader(DataSourceStreamReader):
    """Keeps nothing in memory: where it goes on is in Spark's checkpoint, how far it may go the feed says."""

    def __init__(self, options: dict[str, str]) -> None:
        self.url = options["url"]
        self.limit = int(options["limit"])

    def ask(self, path: str) -> bytes:
        """What the feed answers."""
        with urlopen(f"{self.url}{path}", timeout=30) as answer:
            return bytes(answer.read())

    def initialOffset(self) -> dict[str, int]:
        """Where a new query begins; an old one goes on from its checkpoint."""
        return {"position": 0}

    def latestOffset(self) -> dict[str, int]:
        """The number that the next record of the feed will have."""
        return {"position": int(self.ask("/end"))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Numbers]:
        """The batch between two offsets, cut into parts."""
        low, high = start["position"], end["position"]
        cuts = [low + (high - low) * part // PARTS for part in range(PARTS + 1)]
        return [Numbers(*cut) for cut in pairwise(cuts) if cut[0] < cut[1]]

    def read(self, partition: Numbers) -> Iterator[tuple[Any, ...]]:  # type: ignore[override]
        """The records of one part."""
        answer = self.ask(f"/records?start={partition.start}&end={partition.end}").decode()
        # Each record ends with a line feed. `splitlines` would also cut at U+2028 and others, which may stand in one.
        for line in answer.split("\n")[:-1]:
            yield (line,)


class Feed(DataSource):
    """The source `feed`, with the options `url` and `limit`, which is for readers that cut batches."""

    reads: type[FeedReader] = FeedReader

    @classmethod
    def name(cls) -> str:
        """The format."""
        return "feed"

    def schema(self) -> str:
        """A record as it is."""
        return "value string"

    def streamReader(self, schema: object) -> FeedReader:
        """Spark asks it in one process, and has it read in others."""
        return self.reads(self.options)


class StampedReader(FeedReader):
    """Says of each record when it was read."""

    def read(self, partition: Numbers) -> Iterator[tuple[Any, ...]]:  # type: ignore[override]
        """The records of one part, and the clock."""
        for row in super().read(partition):
            yield (*row, time.time_ns())


class StampedFeed(Feed):
    """The feed, with the time."""

    reads = StampedReader

    def schema(self) -> str:
        """A record as it is, and when it was read."""
        return "value string, read_ns bigint"


def arguments(about: str | None) -> argparse.Namespace:
    """The command line: the feed, and the checkpoint."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--feed", required=True, help="where the records are served, such as http://localhost:8080")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--limit", type=int, default=40, help="records in a batch, where the reader cuts them")
    return parser.parse_args()


def stream(args: argparse.Namespace, source: type[Feed] = Feed) -> DataFrame:
    """The feed as a temporary view `incoming`, and payments out of it. A class is registered with each start."""
    spark = SparkSession.builder.appName("feed").getOrCreate()
    spark.dataSource.register(source)
    rows = spark.readStream.format(source.name()).option("url", args.feed).option("limit", args.limit).load()
    rows.createOrReplaceTempView("incoming")
    return rows


def payments(spark: SparkSession, more: str = "") -> DataFrame:
    """The payments of the view, and the columns `more` of it."""
    return spark.sql(f"select payment.* {more} from (select *, from_json(value, '{PAYMENT}') as payment from incoming)")


def login() -> dict[str, Any]:
    """The address of Postgres, from libpq's PG* variables; PGOPTIONS has the schema."""
    where: dict[str, Any] = {key: os.environ[name] for name, key in LIBPQ.items() if name in os.environ}
    return {**where, "options": os.environ.get("PGOPTIONS", "")}


def into(sql: str, columns: Sequence[str] = COLUMNS) -> Callable[[Iterator[Row]], None]:
    """A writer for `foreachPartition`: the rows of a partition in one transaction. The address is the driver's."""
    where = login()

    def save(rows: Iterator[Row]) -> None:
        values = [tuple(row[column] for column in columns) for row in rows]
        with closing(psycopg2.connect(**where)) as database, database, database.cursor() as cursor:
            execute_values(cursor, sql, values)

    return save


def once(rows: DataFrame, number: int) -> None:
    """Write one batch, and its number in the same transaction: one that was written is not written again."""
    values = [tuple(row[column] for column in COLUMNS) for row in rows.collect()]
    with closing(psycopg2.connect(**login())) as database, database, database.cursor() as cursor:
        cursor.execute("insert into written (batch) values (%s) on conflict do nothing", (number,))
        if cursor.rowcount == 1:
            execute_values(cursor, f"insert into payments ({', '.join(COLUMNS)}) values %s", values)


def run(rows: DataFrame, batch: Callable[[DataFrame, int], None], args: argparse.Namespace) -> None:
    """Until it is ended."""
    rows.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start().awaitTermination()
