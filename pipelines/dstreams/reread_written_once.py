"""Payments off a receiver with DStreams that keeps its place in memory. BROKEN: the next one begins at 0.

The log (`--log`) has what was stored, and (batch time, partition) goes into the transaction of the rows, so a batch
that is done again changes nothing. But the receiver of the next driver reads all of the feed again, and old payments
come in new batches.

    spark-submit reread_written_once.py --feed http://localhost:8080 --checkpoint /data/checkpoints/payments --log

Fixed version: reliable_kept_by_id.py
"""

# /// onceproof
# args: [--feed, "{record_log.url}", --checkpoint, "{checkpoint}", --log]
# progress: dstreams
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     );
#     create table written (batch_time bigint, partition int, primary key (batch_time, partition))
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
        receiver.reads(args.feed, "")
        receivers.stream(ssc, receiver).foreachRDD(common.written_once())

    receivers.run(args, "FeedReceiver.java", build)


if __name__ == "__main__":
    main()
