"""Payments off a socket with DStreams, each batch appended to Postgres by one task: whole, or not at all.

How many blocks a receiver cuts, and so how many tasks a batch has, its timing decides. Here they are one partition,
and a batch is one transaction: it is rolled back, and the write-ahead log (`--log`) has its lines. A batch that was
done comes again all the same, as in received_appended.py.

    spark-submit received_appended_in_one_task.py --host localhost --port 9999 --checkpoint /data/checkpoints --log
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
        common.socket(args, ssc).repartition(1).foreachRDD(common.appended())

    common.run(args, build)


if __name__ == "__main__":
    main()
