"""Payments out of a Python data source into Postgres, each batch once by its number. Holds: the reader goes on where
Spark's checkpoint says.

Spark hands no offset to `latestOffset`. After a restart it plans the last batch of its checkpoint again first, and so
`partitions` is where a reader hears how far it has got.

    spark-submit counter_taken_up.py --feed http://localhost:8080 --checkpoint /data/checkpoints/payments

Broken version: counter_in_memory.py
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

from collections.abc import Sequence

import feed


class CountingReader(feed.FeedReader):
    """Cuts batches by a counter that it takes up from the last batch."""

    position = 0

    def latestOffset(self) -> dict[str, int]:
        """So many further, as far as the feed goes."""
        self.position = min(self.position + self.limit, int(self.ask("/end")))
        return {"position": self.position}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[feed.Numbers]:
        """The batch between two offsets. One that an earlier process has planned says where to go on."""
        self.position = max(self.position, end["position"])
        return super().partitions(start, end)


class CountingFeed(feed.Feed):
    """The feed, in small batches."""

    reads = CountingReader


def main() -> None:
    args = feed.arguments(__doc__)
    feed.run(feed.payments(feed.stream(args, CountingFeed).sparkSession), feed.once, args)


if __name__ == "__main__":
    main()
