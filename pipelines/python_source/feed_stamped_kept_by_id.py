"""Payments out of a Python data source into Postgres, each under its own id, with the time at which it was read. Holds:
the clock is no part of the key.

Spark asks for the same numbers again after a restart. The reader gives the same payments at another time, and the id
finds the row that is there: the time that was written first stays.

    spark-submit feed_stamped_kept_by_id.py --feed http://localhost:8080 --checkpoint /data/checkpoints/payments

Broken version: feed_stamped.py
"""

# /// onceproof
# args: [--feed, "{record_log.url}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp,
#       read_ns bigint
#     )
# sink:
#   postgres: select id, account, amount, currency, event_time from payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# input: {source: record_log, offset: position}
# ///

from __future__ import annotations

import feed
from pyspark.sql import DataFrame

COLUMNS = (*feed.COLUMNS, "read_ns")
SAVE = feed.into(f"insert into payments ({', '.join(COLUMNS)}) values %s on conflict (id) do nothing", columns=COLUMNS)


def batch(rows: DataFrame, number: int) -> None:
    """Write one batch; what is there under its key stays."""
    rows.foreachPartition(SAVE)


def main() -> None:
    args = feed.arguments(__doc__)
    feed.run(feed.payments(feed.stream(args, feed.StampedFeed).sparkSession, ", read_ns"), batch, args)


if __name__ == "__main__":
    main()
