"""Each account once, by `dropDuplicates`, into a table with a key in Postgres. Holds: the table drops what comes again.

    spark-submit accounts_kept.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Broken version: accounts_appended.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table accounts (account text primary key)
# sink:
#   postgres: accounts
#   expected: |
#     select distinct account from ledger
#   key: [account]
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame

PUT = "insert into accounts (account) values %s on conflict do nothing"


def batch(accounts: DataFrame, number: int) -> None:
    """Write the accounts that no batch before has had."""
    stream.put(PUT, accounts.collect())


def main() -> None:
    args = stream.arguments(__doc__)
    writing = stream.payments(args).select("account").dropDuplicates().writeStream.foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
