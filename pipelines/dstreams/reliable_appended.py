"""Payments off a reliable receiver with DStreams, each batch appended to Postgres. BROKEN: Spark does the last batch
again.

The receiver asks a feed that can be asked again. It keeps how far it has read once the block is in the write-ahead log
(`--log`), so no record is lost, whatever dies. A restart does the newest checkpoint's batch again, also one that was
done, out of the log: at least once.

    spark-submit reliable_appended.py --feed http://localhost:8080 --checkpoint /data/checkpoints/payments --log

Fixed version: reliable_kept_by_id.py
"""

# /// onceproof
# args: [--feed, "{record_log.url}", --checkpoint, "{checkpoint}", --log]
# progress: dstreams
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# input: {source: record_log}
# ///

from __future__ import annotations

from typing import Any

import batches_of_time as common
import receivers
from pyspark.streaming import StreamingContext


def main() -> None:
    args = common.arguments(__doc__, "feed")

    def build(ssc: StreamingContext, receiver: Any) -> None:
        receiver.reads(args.feed, f"{args.checkpoint}/place")
        receivers.stream(ssc, receiver).foreachRDD(common.appended())

    receivers.run(args, "FeedReceiver.java", build)


if __name__ == "__main__":
    main()
