"""Payments from Kafka into Postgres, checkpoint in a temporary folder. BROKEN: each attempt makes a new one.

It looks configured, and every test on one machine passes, since within one attempt all is well. After a restart
(or on another node) the folder is another one, and the topic is read from the beginning again.

    spark-submit checkpoint_temporary.py --bootstrap localhost:9092 --topic payments

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

import tempfile

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
    payments = common.stream(common.session("checkpoint_temporary"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", tempfile.mkdtemp()).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
