"""Payments from Kafka into Postgres, checkpoint in a folder that outlives the program. Holds.

The restarted query goes on behind the last committed batch and runs the open one again with the same offsets. The
sink is the append sink of the broken versions, on purpose: the checkpoint alone gives at least once, the guarantee of
the scenario. A death after the batch has written is survived exactly only if the sink does its part as well: upsert.py.

    spark-submit checkpoint_kept.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Broken versions: checkpoint_missing.py, checkpoint_temporary.py, checkpoint_latest.py
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

from harness import failpoint

SAVE = common.into("insert into payments (id, account, amount, currency, event_time) values %s")


def batch(payments: DataFrame, number: int) -> None:
    """Append one batch."""
    failpoint.reach("batch-begun", batch=number)
    payments.foreachPartition(SAVE)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("checkpoint_kept"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
