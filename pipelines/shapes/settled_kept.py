"""Open payments of each account in Postgres by MERGE, a settled account hidden. Holds: it keeps its offset.

A payment opens one, a large one closes one. A row remembers the greatest offset that went into it, and stays where its
account is settled: whoever reads the table leaves it out. Rows that nobody needs any more may go once no batch can come
again that went into them.

    spark-submit settled_kept.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Broken twin: settled_deleted.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table unsettled (account text primary key, payments bigint, off bigint)
# sink:
#   postgres: "select account, payments from unsettled where payments <> 0"
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
    when matched and s.off > u.off then update set payments = u.payments + s.payments, off = s.off
    when not matched then insert (account, payments, off) values (s.account, s.payments, s.off)
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
