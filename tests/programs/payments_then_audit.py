"""Two queries on the topic, each appending to a table of its own; the audit begins when all payments are there."""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --folder, "{folder}"]
# setup:
#   postgres: create table payments (id bigint); create table audit (id bigint)
# sink:
#   postgres: payments
#   expected: select id from ledger
#   key: [id]
#   query: payments
# ///

from __future__ import annotations

import functools
import threading
from contextlib import closing

import psycopg2
import source
from pyspark.sql import DataFrame


def main() -> None:
    parser = source.parser(__doc__)
    parser.add_argument("--records", type=int, required=True)
    args = parser.parse_args()
    spark = source.session()
    for table in ("payments", "audit"):
        writer = source.stream(spark, args).writeStream.foreachBatch(functools.partial(batch, table))
        writer.option("checkpointLocation", f"{args.folder}/checkpoints/{table}").start()
        filled(table, args.records)
    spark.streams.awaitAnyTermination()


def batch(table: str, payments: DataFrame, number: int) -> None:
    """Append one batch."""
    source.insert(table, payments, ("id",))


def filled(table: str, records: int) -> None:
    """Wait for so many payments."""
    with closing(psycopg2.connect("")) as database, database.cursor() as cursor:
        database.autocommit = True
        count = 0
        while count < records:
            threading.Event().wait(0.2)
            cursor.execute(f"select count(distinct id) from {table}")
            (count,) = cursor.fetchall()[0]


if __name__ == "__main__":
    main()
