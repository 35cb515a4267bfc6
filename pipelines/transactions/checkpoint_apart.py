"""Payments and their audit trail by two queries of one program. Holds: each query has a checkpoint of its own.

Each reads the topic for itself, in batches of its own, and goes on from its own folder after a restart.

    spark-submit checkpoint_apart.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints

Broken version: checkpoint_shared.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
#     );
#     create table audit (id bigint primary key, account text)
# sink:
#   - postgres: payments
#     expected: select id, account, amount, currency, event_time from ledger
#     key: [id]
#     query: payments
#   - postgres: audit
#     expected: select id, account from ledger
#     key: [id]
#     query: audit
# ///

from __future__ import annotations

import common
from pyspark.sql import DataFrame

SAVE = common.into("""
    insert into payments (id, account, amount, currency, event_time) values %s
    on conflict (id) do update set
        account = excluded.account, amount = excluded.amount,
        currency = excluded.currency, event_time = excluded.event_time
""")

AUDIT = common.into("insert into audit (id, account) values %s on conflict do nothing", ("id", "account"))


def audit_batch(payments: DataFrame, number: int) -> None:
    """Write one batch of the audit trail."""
    payments.foreachPartition(AUDIT)


def payments_batch(payments: DataFrame, number: int) -> None:
    """Write one batch of payments."""
    payments.foreachPartition(SAVE)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    stream = common.stream(common.session("checkpoint_apart"), args)
    home = args.checkpoint
    audit = stream.writeStream.foreachBatch(audit_batch).option("checkpointLocation", f"{home}/audit").start()
    # No payment is written before the audit trail is seen to work.
    while not audit.lastProgress:
        audit.awaitTermination(1)
    stream.writeStream.foreachBatch(payments_batch).option("checkpointLocation", f"{home}/payments").start()
    # The program ends with the first query that fails, whichever it is: what is started again starts both.
    stream.sparkSession.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
