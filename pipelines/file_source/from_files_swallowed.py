"""Payments out of files into Postgres, each under its own id. BROKEN: a batch that fails is logged, and the next one
begins.

A file that cannot be read costs its payments and those of the files beside it: Spark takes the batch for done. So it is
in HDFS where the only replica of a block is lost. What Spark itself may be told to pass over does not cover that: with
`spark.sql.files.ignoreCorruptFiles` and `ignoreMissingFiles` a block that is lost still ends the query.

    spark-submit from_files_swallowed.py --folder /data/incoming --checkpoint /data/checkpoints/payments

In from_files_upsert.py the error ends the query: nothing brings the files back, and an operator sees the error.
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
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

SAVE = dropped.into("""
    insert into payments (id, account, amount, currency, event_time) values %s
    on conflict (id) do update set
        account = excluded.account, amount = excluded.amount,
        currency = excluded.currency, event_time = excluded.event_time
""")


def batch(rows: DataFrame, number: int) -> None:
    """Write one batch."""
    try:
        rows.foreachPartition(SAVE)
    except (Py4JJavaError, PySparkException) as failure:
        print(f"batch {number} not written: {str(failure).splitlines()[0]}", flush=True)


def main() -> None:
    args = dropped.arguments(__doc__)
    rows = dropped.stream(args, "kept by id, errors swallowed")
    rows.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
