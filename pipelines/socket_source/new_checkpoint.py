"""Payments off a socket into Postgres, under a new checkpoint with each start. At most once: what Spark had received
and not written when the driver died is gone, and nothing comes again.

Spark's socket source keeps what it receives in the driver's memory. No checkpoint brings it back.

    spark-submit new_checkpoint.py --host localhost --port 9999

Fixed version: a source that can be read again, such as ../python_source/feed_kept_by_id.py
"""

# /// onceproof
# args: [--host, "{socket.host}", --port, "{socket.port}"]
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

import tempfile

import socket_lines
from pyspark.sql import DataFrame

SAVE = socket_lines.into("insert into payments (id, account, amount, currency, event_time) values %s")


def batch(rows: DataFrame, number: int) -> None:
    """Append one batch."""
    rows.foreachPartition(SAVE)


def main() -> None:
    args = socket_lines.arguments(__doc__)
    rows = socket_lines.stream(args, "payments")
    query = rows.writeStream.foreachBatch(batch).option("checkpointLocation", tempfile.mkdtemp()).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
