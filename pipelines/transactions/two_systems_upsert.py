"""Payments from Kafka into a table and into a search index. Holds: both are written under the id of the payment.

A second database takes the place of the index. The batch may be written to either any number of times; when it is
committed both have it. Between the two writes a reader can see a payment in the table and not yet in the index:
idempotence gives exactly once, not atomic.

    SEARCH_DSN=… spark-submit two_systems_upsert.py --bootstrap localhost:9092 --topic payments --checkpoint /data/both

Broken version: two_systems_append.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# env: {SEARCH_DSN: "{postgres.second.dsn}"}
# setup:
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
#   postgres.second: create table documents (id bigint primary key, account text, body text)
# together: true
# sink:
#   - postgres: payments
#     expected: select id, account, amount, currency, event_time from ledger
#     key: [id]
#   - postgres: documents
#     part: second
#     expected: |
#       select id, account, account || ' paid ' || amount || ' ' || currency as body
#       from ledger
#     key: [id]
# ///

from __future__ import annotations

import os

import common
from pyspark.sql import DataFrame

from harness import failpoint

SAVE = common.into("""
    insert into payments (id, account, amount, currency, event_time) values %s
    on conflict (id) do update set
        account = excluded.account, amount = excluded.amount,
        currency = excluded.currency, event_time = excluded.event_time
""")
INDEX = common.into(
    """
    insert into documents (id, account, body) values %s
    on conflict (id) do update set account = excluded.account, body = excluded.body
    """,
    ("id", "account", "body"),
    dsn=os.environ["SEARCH_DSN"],
)


def batch(payments: DataFrame, number: int) -> None:
    """Write one batch to the table, then to the index."""
    payments.foreachPartition(SAVE)
    failpoint.reach("first-written", batch=number)
    body = "concat(account, ' paid ', cast(amount as string), ' ', currency) as body"
    payments.selectExpr("id", "account", body).foreachPartition(INDEX)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("two_systems_upsert"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
