"""Payments off a reliable receiver with DStreams into Postgres, each by its id. BROKEN: each start makes its context.

It writes a checkpoint and a log (`--log`), and the next driver reads neither: only `StreamingContext.getOrCreate` does.
The receiver goes on behind what the last one had stored, so what was in a batch and not written is lost.

    spark-submit reliable_begun_anew.py --feed http://localhost:8080 --checkpoint /data/checkpoints/payments --log

Fixed version: reliable_kept_by_id.py
"""

# /// onceproof
# args: [--feed, "{record_log.url}", --checkpoint, "{checkpoint}", --log]
# progress: dstreams
# setup:
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
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
        receivers.stream(ssc, receiver).foreachRDD(common.kept_by_id())

    receivers.run(args, "FeedReceiver.java", build, goes_on=False)


if __name__ == "__main__":
    main()
