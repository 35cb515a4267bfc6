"""Payments from Kafka into files of JSON, a folder for each day and account, by Spark's own file sink. Holds for who
reads by its manifest.

    spark-submit sink_json.py --bootstrap localhost:9092 --topic payments --output /data/payments \
        --checkpoint /data/checkpoints/payments
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --output, "{files.path}/payments",
#   --checkpoint, "{checkpoint}"]
# sink:
#   files: payments
#   format: json
#   columns: id bigint, day date, account string, amount decimal(12,2), currency string, event_time timestamp_ntz
#   reader: manifest
#   expected: select id, cast(event_time as date) as day, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import output
from pyspark.sql import functions as f


def main() -> None:
    args = output.arguments(__doc__, "checkpoint")
    payments = output.stream(args).drop("part").withColumn("day", f.to_date("event_time"))
    # The default writes milliseconds alone.
    form = {"timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
    files = payments.writeStream.format("json").options(**form).partitionBy("day", "account")
    query = files.option("checkpointLocation", args.checkpoint).start(args.output)
    query.awaitTermination()


if __name__ == "__main__":
    main()
