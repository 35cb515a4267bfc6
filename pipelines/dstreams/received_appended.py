"""Payments off a socket with DStreams, each batch appended to Postgres. BROKEN: Spark does the last batch again.

A restart takes up the newest checkpoint, and does every batch from its time on again, also one that was done. With the
write-ahead log (`--log`) the batch comes again with the same lines, and they are there twice. Without it it comes
again empty: what the receiver had stored was in the executors' memory; what was not written by then is lost.

    spark-submit received_appended.py --host localhost --port 9999 --checkpoint /data/checkpoints/payments --log

Fixed version: received_written_once.py
"""

# /// onceproof
# args: [--host, "{socket.host}", --port, "{socket.port}", --checkpoint, "{checkpoint}"]
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
# input: {source: socket}
# ///

from __future__ import annotations

import batches_of_time as common
from pyspark.streaming import StreamingContext


def main() -> None:
    args = common.arguments(__doc__, "host", "port")

    def build(ssc: StreamingContext) -> None:
        common.socket(args, ssc).foreachRDD(common.appended())

    common.run(args, build)


if __name__ == "__main__":
    main()
