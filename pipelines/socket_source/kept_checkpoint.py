"""Payments off a socket into Postgres, under a checkpoint that outlives the program. BROKEN: Spark's socket source does
not go on after a restart.

It counts lines from 0 in each process, and the checkpoint has the old count. Spark steps back, and ends the query with
the next batch: "Offsets committed out of order". No line of the new connection is ever in a batch.

    spark-submit kept_checkpoint.py --host localhost --port 9999 --checkpoint /data/checkpoints/payments

Fixed version: a source that can be read again, such as ../python_source/feed_kept_by_id.py
"""

# /// onceproof
# args: [--host, "{socket.host}", --port, "{socket.port}", --checkpoint, "{checkpoint}"]
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

import socket_lines
from pyspark.sql import DataFrame

SAVE = socket_lines.into("insert into payments (id, account, amount, currency, event_time) values %s")


def batch(rows: DataFrame, number: int) -> None:
    """Append one batch."""
    rows.foreachPartition(SAVE)


def main() -> None:
    args = socket_lines.arguments(__doc__, "checkpoint")
    rows = socket_lines.stream(args, "payments")
    query = rows.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
