"""Balances of accounts in Postgres by MERGE. Holds: a row remembers how far it has come, and goes no way twice.

The account is the record's key, so that one partition of Kafka has all of its payments, in order. The greatest offset
that went into a balance says whether a batch is new to it; balance and offset are in one row. It needs batches that are
the same when they are run again, as Spark's checkpoint makes them.

    spark-submit balances_merged_once.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Broken version: balances_merged.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table balances (account text primary key, payments bigint, balance numeric(14, 2), off bigint)
# sink:
#   postgres: "select account, payments, balance from balances"
#   expected: |
#     select account, count(*) as payments, sum(amount) as balance from ledger group by 1
#   key: [account]
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

MERGE = """
    merge into balances b using (values %s) as s (account, payments, balance, off) on b.account = s.account
    when matched and s.off > b.off then update set
        payments = b.payments + s.payments, balance = b.balance + s.balance, off = s.off
    when not matched then insert (account, payments, balance, off) values (s.account, s.payments, s.balance, s.off)
"""


def batch(payments: DataFrame, number: int) -> None:
    """Merge what one batch adds to each account."""
    added = payments.groupBy("account").agg(f.count("*"), f.sum("amount"), f.max("off"))
    stream.put(MERGE, added.collect())


def main() -> None:
    args = stream.arguments(__doc__)
    writing = stream.payments(args).writeStream.foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
