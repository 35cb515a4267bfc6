"""Payments from Kafka into Postgres, each under its own id. Holds: the sink is idempotent.

Spark still runs a batch again after a crash. The id of the payment is the table's primary key and the row is the same
each time, so the second insert changes nothing. The key must come from the record: one drawn while writing (uuid,
sequence, clock) would differ on the second run.

    spark-submit upsert.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Broken versions: append.py, append_jdbc.py, upsert_swallowed.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import common
from pyspark.sql import DataFrame

INSERT = """
    insert into payments (id, account, amount, currency, event_time) values %s
    on conflict (id) do update set
        account = excluded.account, amount = excluded.amount,
        currency = excluded.currency, event_time = excluded.event_time
"""
SAVE = common.stoppable(common.into(INSERT))


def batch(payments: DataFrame, number: int) -> None:
    """Write one batch; again and again comes to the same."""
    payments.foreachPartition(SAVE)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("upsert"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
