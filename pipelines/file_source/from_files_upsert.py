"""Payments out of files into Postgres, each under its own id. Holds: the sink is idempotent.

With `--clean delete` Spark removes the files of a batch, but only once it has committed that batch: one that has to be
run again finds its files.

    spark-submit from_files_upsert.py --folder /data/incoming --checkpoint /data/checkpoints/payments

Broken version: from_files_append.py
"""

# /// onceproof
# args: [--folder, "{files.input.path}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
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

SAVE = dropped.into("""
    insert into payments (id, account, amount, currency, event_time) values %s
    on conflict (id) do update set
        account = excluded.account, amount = excluded.amount,
        currency = excluded.currency, event_time = excluded.event_time
""")


def batch(rows: DataFrame, number: int) -> None:
    """Write one batch; again and again comes to the same."""
    rows.foreachPartition(SAVE)


def main() -> None:
    args = dropped.arguments(__doc__)
    rows = dropped.stream(args, "kept by id")
    rows.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
