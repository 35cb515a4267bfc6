"""Payments from Kafka into Postgres, checkpoint in a temporary folder. BROKEN: each attempt but the first skips.

The duplicates of checkpoint_temporary.py were seen, and this was the cure: if the table holds payments already, start
at `latest`. What arrives between the death of one attempt and the first look of the next is never read.

    spark-submit checkpoint_latest.py --bootstrap localhost:9092 --topic payments

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
from contextlib import closing

import common
import psycopg2
from pyspark.sql import DataFrame

from harness import failpoint

SAVE = common.into("insert into payments (id, account, amount, currency, event_time) values %s")


def empty() -> bool:
    """True while the table holds no payment."""
    with closing(psycopg2.connect("")) as database, database.cursor() as cursor:
        cursor.execute("select 1 from payments limit 1")
        return cursor.fetchone() is None


def batch(payments: DataFrame, number: int) -> None:
    """Append one batch."""
    failpoint.reach("batch-begun", batch=number)
    payments.foreachPartition(SAVE)


def main() -> None:
    args = common.arguments(__doc__)
    start = "earliest" if empty() else "latest"
    payments = common.stream(common.session("checkpoint_latest"), args, start=start)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", tempfile.mkdtemp()).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
