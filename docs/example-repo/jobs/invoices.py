"""Invoices from Kafka into Postgres, at the address in WAREHOUSE.

With `--write once` an invoice that comes again lands on its own row. With `--write append` it is there twice: this is
how the job was before its repair.

    spark-submit invoices.py --brokers localhost:9092 --topic invoices --checkpoint /data/checkpoints/invoices
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame, Row, SparkSession

INVOICE = "id bigint, account string, amount decimal(12, 2)"
APPEND = "insert into invoices (id, account, amount) values %s"
ONCE = f"{APPEND} on conflict (id) do nothing"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("brokers", "topic", "checkpoint"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--write", choices=["once", "append"], default="once")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    statement = ONCE if args.write == "once" else APPEND
    warehouse = os.environ["WAREHOUSE"]
    spark = SparkSession.builder.appName("invoices").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.brokers)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 60)
        .load()
    )
    invoices = records.selectExpr(f"from_json(cast(value as string), '{INVOICE}') as i").select("i.*")

    def save(part: Iterator[Row]) -> None:  # on an executor, one transaction a partition
        connection = psycopg2.connect(warehouse)
        with connection, connection.cursor() as cursor:
            execute_values(cursor, statement, [tuple(row) for row in part])
        connection.close()

    def batch(rows: DataFrame, number: int) -> None:
        rows.foreachPartition(save)

    query = invoices.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
