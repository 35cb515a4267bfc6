"""Payments from Kafka into Postgres without a checkpoint. BROKEN: each attempt starts from the beginning.

Without `checkpointLocation` Spark makes a folder of its own for this attempt and forgets it. The next attempt finds
none, so `startingOffsets` decides again: with `earliest` it reads the whole topic, and an append sink has it all twice.

    spark-submit checkpoint_missing.py --bootstrap localhost:9092 --topic payments

Fixed version: checkpoint_kept.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}"]
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

from harness import failpoint

SAVE = common.into("insert into payments (id, account, amount, currency, event_time) values %s")


def batch(payments: DataFrame, number: int) -> None:
    """Append one batch."""
    failpoint.reach("batch-begun", batch=number)
    payments.foreachPartition(SAVE)


def main() -> None:
    args = common.arguments(__doc__)
    payments = common.stream(common.session("checkpoint_missing"), args)
    query = payments.writeStream.foreachBatch(batch).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
