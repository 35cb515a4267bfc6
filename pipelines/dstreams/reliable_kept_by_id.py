"""Payments off a reliable receiver with DStreams into Postgres, each by its id: exactly once.

The receiver asks a feed that can be asked again, and keeps how far it has read once the block is in the write-ahead log
(`--log`). If it dies in between, the next one stores the same records in another block: so (batch time, partition), as
in received_written_once.py, would not do as a key here, and the payment's own id does.

    spark-submit reliable_kept_by_id.py --feed http://localhost:8080 --checkpoint /data/checkpoints/payments --log

Broken versions: reliable_appended.py, reread_written_once.py, reliable_begun_anew.py
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

    receivers.run(args, "FeedReceiver.java", build)


if __name__ == "__main__":
    main()
