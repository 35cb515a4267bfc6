"""Payments from Kafka into Parquet files, by Spark's own file sink. Holds for who reads by its manifest.

The sink writes `_spark_metadata/N` when all files of batch N are there, and passes over a batch whose number it knows.
A batch that was cut before that leaves files which the manifest never names: Spark does not read them, and everybody
who lists the folder does.

    spark-submit sink_parquet.py --bootstrap localhost:9092 --topic payments --output /data/payments \
        --checkpoint /data/checkpoints/payments

Broken versions: checkpoint_begun_anew.py, output_cleared.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --output, "{files.path}/payments",
#   --checkpoint, "{checkpoint}"]
# sink:
#   files: payments
#   reader: manifest
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import output


def main() -> None:
    args = output.arguments(__doc__, "checkpoint")
    payments = output.stream(args).drop("part")
    query = payments.writeStream.format("parquet").option("checkpointLocation", args.checkpoint).start(args.output)
    query.awaitTermination()


if __name__ == "__main__":
    main()
