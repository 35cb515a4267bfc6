"""Payments from Kafka into Parquet files, by Spark's own file sink. BROKEN: a new checkpoint over the old output.

The checkpoint is in a temporary folder, so the next attempt has none. It reads the topic from the beginning and
counts its batches from 0, while the manifest in the output has these numbers: the sink passes the new batches 0, 1, 2 …
over without a word, also the records in them that no attempt has written.

    spark-submit checkpoint_begun_anew.py --bootstrap localhost:9092 --topic payments --output /data/payments

Fixed version: sink_parquet.py
"""

# /// onceproof
# # Without a limit: the first batch of the new checkpoint has all there is. Small ones would be cut otherwise than
# # those of before, and which records are lost or doubled would change from run to run.
# args:
#   [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --output, "{files.path}/payments",
#    --max-records, "100000"]
# sink:
#   files: payments
#   reader: manifest
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import tempfile

import output


def main() -> None:
    args = output.arguments(__doc__)
    checkpoint = tempfile.mkdtemp(prefix="payments-")
    payments = output.stream(args).drop("part")
    query = payments.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(args.output)
    query.awaitTermination()


if __name__ == "__main__":
    main()
