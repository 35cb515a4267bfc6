"""Payments out of a Python data source into Postgres, row by row as they come. BROKEN: an append sink.

The reader keeps nothing in memory, and Spark asks it for the same numbers again after a restart. The sink does not
know that it has their rows already.

    spark-submit feed_appended.py --feed http://localhost:8080 --checkpoint /data/checkpoints/payments

Fixed version: feed_kept_by_id.py
"""

# /// onceproof
# args: [--feed, "{record_log.url}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
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

SAVE = feed.into("insert into payments (id, account, amount, currency, event_time) values %s")


def batch(rows: DataFrame, number: int) -> None:
    """Append one batch."""
    rows.foreachPartition(SAVE)


def main() -> None:
    args = feed.arguments(__doc__)
    feed.run(feed.payments(feed.stream(args).sparkSession), batch, args)


if __name__ == "__main__":
    main()
