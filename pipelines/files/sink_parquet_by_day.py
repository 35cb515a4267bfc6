"""Payments from Kafka into Parquet files, a folder for each day and account, by Spark's own file sink. Holds for who
reads by its manifest.

A reader takes day and account from the names of the folders, where both are text.

    spark-submit sink_parquet_by_day.py --bootstrap localhost:9092 --topic payments --output /data/payments \
        --checkpoint /data/checkpoints/payments
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --output, "{files.path}/payments",
#   --checkpoint, "{checkpoint}"]
# sink:
#   files: payments
#   reader: manifest
#   expected: |
#     select id, cast(cast(event_time as date) as varchar) as day, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import output
from pyspark.sql import functions as f


def main() -> None:
    args = output.arguments(__doc__, "checkpoint")
    payments = output.stream(args).drop("part").withColumn("day", f.to_date("event_time"))
    files = payments.writeStream.format("parquet").partitionBy("day", "account")
    query = files.option("checkpointLocation", args.checkpoint).start(args.output)
    query.awaitTermination()


if __name__ == "__main__":
    main()
