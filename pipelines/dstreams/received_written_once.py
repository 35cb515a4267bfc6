"""Payments off a socket with DStreams: (batch time, partition) goes into the transaction of the rows in Postgres.

With the write-ahead log (`--log`) a batch that is done again has the same blocks in the same order, and the attempt
that comes second finds the line in `written`. What the log cannot bring back is what the receiver had read and not
stored yet: a socket cannot be asked again. Without the log, a batch that had not been written is lost as well.

    spark-submit received_written_once.py --host localhost --port 9999 --checkpoint /data/checkpoints/payments --log

Broken versions: received_appended.py, received_overwritten.py
"""

# /// onceproof
# args: [--host, "{socket.host}", --port, "{socket.port}", --checkpoint, "{checkpoint}"]
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
# input: {source: socket}
# ///

from __future__ import annotations

import batches_of_time as common
from pyspark.streaming import StreamingContext


def main() -> None:
    args = common.arguments(__doc__, "host", "port")

    def build(ssc: StreamingContext) -> None:
        common.socket(args, ssc).foreachRDD(common.written_once())

    common.run(args, build)


if __name__ == "__main__":
    main()
