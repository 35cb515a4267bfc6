"""Payments out of a Python data source into Postgres, each under its own id. Holds: the sink is idempotent, and the
reader gives the same records for the same numbers.

    spark-submit feed_kept_by_id.py --feed http://localhost:8080 --checkpoint /data/checkpoints/payments

Broken version: feed_appended.py
"""

# /// onceproof
# args: [--feed, "{record_log.url}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# input: {source: record_log, offset: position}
# ///

from __future__ import annotations

import feed
from pyspark.sql import DataFrame

SAVE = feed.into("""
    insert into payments (id, account, amount, currency, event_time) values %s
    on conflict (id) do update set
        account = excluded.account, amount = excluded.amount,
        currency = excluded.currency, event_time = excluded.event_time
""")


def batch(rows: DataFrame, number: int) -> None:
    """Write one batch; again and again comes to the same."""
    rows.foreachPartition(SAVE)


def main() -> None:
    args = feed.arguments(__doc__)
    feed.run(feed.payments(feed.stream(args).sparkSession), batch, args)


if __name__ == "__main__":
    main()
