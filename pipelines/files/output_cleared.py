"""Payments from Kafka into Parquet files, by Spark's own file sink. BROKEN: the output is cleared at each start.

The checkpoint stays, and says that the batches before are done: they are not written again. The manifest begins with a
later batch, so that Spark itself cannot read the folder any more.

    spark-submit output_cleared.py --bootstrap localhost:9092 --topic payments --output /data/payments \
        --checkpoint /data/checkpoints/payments

Fixed version: sink_parquet.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --output, "{files.path}/payments",
#   --checkpoint, "{checkpoint}"]
# sink:
#   files: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import shutil

import output


def main() -> None:
    args = output.arguments(__doc__, "checkpoint")
    shutil.rmtree(args.output, ignore_errors=True)
    payments = output.stream(args).drop("part")
    query = payments.writeStream.format("parquet").option("checkpointLocation", args.checkpoint).start(args.output)
    query.awaitTermination()


if __name__ == "__main__":
    main()
