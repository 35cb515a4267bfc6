"""Payments and their audit trail by two queries of one program. BROKEN: both name the same checkpoint.

The checkpoint's folder is the query's identity. When the second query starts on it, Spark stops the first (one line in
the log) and goes on behind what the first had committed. So the audit trail ends where the payments begin: each table
lacks what went into the other. A query of payments that fails is started again.

    spark-submit checkpoint_shared.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/both

Fixed version: checkpoint_apart.py
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
#   - postgres: audit
#     expected: select id, account from ledger
#     key: [id]
# ///

from __future__ import annotations

import sys
from contextlib import suppress

import common
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

TRIES = 3

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
    stream = common.stream(common.session("checkpoint_shared"), args)
    audit = stream.writeStream.foreachBatch(audit_batch).option("checkpointLocation", args.checkpoint).start()
    # No payment is written before the audit trail is seen to work.
    while not audit.lastProgress:
        audit.awaitTermination(1)
    payments = stream.writeStream.foreachBatch(payments_batch).option("checkpointLocation", args.checkpoint)
    for _ in range(TRIES):
        with suppress(StreamingQueryException):
            payments.start().awaitTermination()
    sys.exit(f"the query of payments failed {TRIES} times")


if __name__ == "__main__":
    main()
