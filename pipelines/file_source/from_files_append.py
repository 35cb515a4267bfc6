"""Payments out of files into Postgres, row by row as they come. BROKEN: an append sink.

Spark's file source remembers which file is in which batch, so a restart reads the same files again. The sink does not
know that it has their rows already.

    spark-submit from_files_append.py --folder /data/incoming --checkpoint /data/checkpoints/payments

Fixed version: from_files_upsert.py
"""

# /// onceproof
# args: [--folder, "{files.input.path}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# input: {source: files}
# ///

from __future__ import annotations

import dropped
from pyspark.sql import DataFrame

SAVE = dropped.into("insert into payments (id, account, amount, currency, event_time) values %s")


def batch(rows: DataFrame, number: int) -> None:
    """Append one batch."""
    rows.foreachPartition(SAVE)


def main() -> None:
    args = dropped.arguments(__doc__)
    rows = dropped.stream(args, "appended")
    rows.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
