"""Each account once, by `dropDuplicates`, appended to a table in Postgres. BROKEN: a batch may come again.

The state of `dropDuplicates` knows the records of all batches that are committed. A batch that is run again begins with
the state before it: its accounts are new again, and the table gets them twice.

    spark-submit accounts_appended.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Fixed version: accounts_kept.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table accounts (account text)
# sink:
#   postgres: accounts
#   expected: |
#     select distinct account from ledger
#   key: [account]
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame

PUT = "insert into accounts (account) values %s"


def batch(accounts: DataFrame, number: int) -> None:
    """Write the accounts that no batch before has had."""
    stream.put(PUT, accounts.collect())


def main() -> None:
    args = stream.arguments(__doc__)
    writing = stream.payments(args).select("account").dropDuplicates().writeStream.foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
