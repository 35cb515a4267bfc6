"""Payments from Kafka into Postgres, row by row as they come. BROKEN: an append sink.

Each Spark task inserts its rows in one transaction. When the driver dies after that and before Spark has written
`commits/N`, the restarted query runs batch N again, as it must, and every payment of it is there twice. The same
happens without a restart when an executor dies after a task's commit and before the driver knows of it.

    spark-submit append.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Fixed version: upsert.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import common
from pyspark.sql import DataFrame

SAVE = common.stoppable(common.into("insert into payments (id, account, amount, currency, event_time) values %s"))


def batch(payments: DataFrame, number: int) -> None:
    """Append one batch."""
    payments.foreachPartition(SAVE)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("append"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
