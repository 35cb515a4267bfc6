"""Open payments of each account in Postgres by MERGE, an account that is settled deleted. BROKEN: at least once.

A payment opens one, a large one closes one. A row remembers the greatest offset that went into it, so that a batch that
is run again changes no row twice. A row that is deleted takes its offset along: the batch comes again, finds none, and
makes one of what it had closed.

    spark-submit settled_deleted.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Repair: settled_kept.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table unsettled (account text primary key, payments bigint, off bigint)
# sink:
#   postgres: "select account, payments from unsettled"
#   effect: |
#     select account, sum(case when amount > 50000 then -1 else 1 end) as payments from ledger
#     group by 1 having sum(case when amount > 50000 then -1 else 1 end) <> 0
#   key: [account]
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

MERGE = """
    merge into unsettled u using (values %s) as s (account, payments, off) on u.account = s.account
    when matched and s.off > u.off and u.payments + s.payments = 0 then delete
    when matched and s.off > u.off then update set payments = u.payments + s.payments, off = s.off
    when not matched and s.payments <> 0 then insert (account, payments, off) values (s.account, s.payments, s.off)
"""


def batch(payments: DataFrame, number: int) -> None:
    """Merge what one batch opens and closes of each account."""
    one = f.when(f.col("amount") > 50000, -1).otherwise(1)
    stream.put(MERGE, payments.groupBy("account").agg(f.sum(one), f.max("off")).collect())


def main() -> None:
    args = stream.arguments(__doc__)
    writing = stream.payments(args).writeStream.foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
