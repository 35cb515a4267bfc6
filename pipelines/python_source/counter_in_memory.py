"""Payments out of a Python data source into Postgres, each batch once by its number. BROKEN: the reader counts in
memory.

`latestOffset` says how far the next batch may go: so many records further than the last one went. It counts from 0
with each start. Spark does not mind that the end of a batch lies before its start: the batch is empty, the next one
begins where that one ended, and old records come again in new batches.

    spark-submit counter_in_memory.py --feed http://localhost:8080 --checkpoint /data/checkpoints/payments

Fixed version: counter_taken_up.py
"""

# /// onceproof
# args: [--feed, "{record_log.url}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     );
#     create table written (batch bigint primary key)
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# input: {source: record_log, offset: position}
# ///

from __future__ import annotations

import feed


class CountingReader(feed.FeedReader):
    """Cuts batches by a counter of its own."""

    position = 0

    def latestOffset(self) -> dict[str, int]:
        """So many further, as far as the feed goes."""
        self.position = min(self.position + self.limit, int(self.ask("/end")))
        return {"position": self.position}


class CountingFeed(feed.Feed):
    """The feed, in small batches."""

    reads = CountingReader


def main() -> None:
    args = feed.arguments(__doc__)
    feed.run(feed.payments(feed.stream(args, CountingFeed).sparkSession), feed.once, args)


if __name__ == "__main__":
    main()
