"""Orders from Kafka into Redis, each put into a hash under its id: one that is written twice is there once."""

# /// onceproof
# args: ["{kafka.bootstrap}", "{topic}", "{checkpoint}"]
# env: {REDIS: "{redis.url}", PREFIX: "{redis.prefix}"}
# sink: {redis: orders, expected: "select id, shop from ledger", key: [id]}
# ///

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import redis
from pyspark.sql import DataFrame, Row, SparkSession


def main() -> None:
    bootstrap, topic, checkpoint = sys.argv[1:]
    url, prefix = os.environ["REDIS"], os.environ["PREFIX"]

    def save(rows: Iterator[Row]) -> None:  # on an executor
        client = redis.Redis.from_url(url)
        for row in rows:
            client.hset(f"{prefix}:orders", row.id, json.dumps(row.asDict()))
        client.close()

    def batch(orders: DataFrame, number: int) -> None:
        orders.foreachPartition(save)

    spark = SparkSession.builder.appName("orders").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    orders = records.selectExpr("from_json(cast(value as string), 'id string, shop string') as o").select("o.*")
    orders.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
