"""Payments into Postgres by a program that a scheduler starts again and again: what is there now, then it ends. BROKEN:
appended.

`trigger(availableNow=True)` changes when a program ends, not what happens to the batch in which it dies.

    spark-submit now_appended.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Fixed version: now_kept.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (id bigint, account text, amount numeric(12, 2))
# sink:
#   postgres: payments
#   expected: |
#     select id, account, amount from ledger
#   key: [id]
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame

PUT = "insert into payments (id, account, amount) values %s"


def batch(payments: DataFrame, number: int) -> None:
    """Write one batch."""
    stream.put(PUT, payments.select("id", "account", "amount").collect())


def main() -> None:
    args = stream.arguments(__doc__)
    writing = stream.payments(args).writeStream.trigger(availableNow=True).foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
