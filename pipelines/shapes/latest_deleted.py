"""The latest payment of each account in Postgres, deleted where it is large, by MERGE. Holds: it says it again.

A batch that is run again writes the same latest payments, and deletes accounts that are deleted already. That is right
because no later batch has run in between: the checkpoint sees to it.

    spark-submit latest_deleted.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table latest (account text primary key, id bigint, amount numeric(12, 2))
# sink:
#   postgres: latest
#   expected: |
#     select account, id, amount
#     from (select account, max_by(id, _offset) as id, max_by(amount, _offset) as amount from ledger group by 1)
#     where amount <= 50000
#   key: [account]
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

MERGE = """
    merge into latest l using (values %s) as s (account, id, amount) on l.account = s.account
    when matched and s.amount > 50000 then delete
    when matched then update set id = s.id, amount = s.amount
    when not matched and s.amount <= 50000 then insert (account, id, amount) values (s.account, s.id, s.amount)
"""


def batch(payments: DataFrame, number: int) -> None:
    """Merge the last payment of each account in one batch."""
    last = payments.groupBy("account").agg(f.max_by("id", "off"), f.max_by("amount", "off"))
    stream.put(MERGE, last.collect())


def main() -> None:
    args = stream.arguments(__doc__)
    writing = stream.payments(args).writeStream.foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
