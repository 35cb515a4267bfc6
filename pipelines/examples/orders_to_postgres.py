"""A small program as a user has it: its own argument names, nothing of the harness, not written to be tested.

    python orders_to_postgres.py --brokers localhost:9092 --read-from orders --state /data/state --warehouse dbname=shop

Its author calls it exactly once, since it has a checkpoint. (It is not: the insert can run twice.)
"""

from __future__ import annotations

import argparse

import psycopg2
from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("brokers", "read-from", "state", "warehouse"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    spark = SparkSession.builder.appName("orders").getOrCreate()

    def write(orders: DataFrame, _: int) -> None:
        warehouse = psycopg2.connect(options.warehouse)
        with warehouse, warehouse.cursor() as cursor:
            for order in orders.collect():
                cursor.execute("insert into orders (id, amount) values (%s, %s)", (order["id"], order["amount"]))
        warehouse.close()

    orders = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", options.brokers)
        .option("subscribe", options.read_from)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("from_json(cast(value as string), 'id long, amount decimal(12, 2)') as o")
        .select("o.*")
    )
    orders.writeStream.foreachBatch(write).option("checkpointLocation", options.state).start().awaitTermination()


if __name__ == "__main__":
    main()
