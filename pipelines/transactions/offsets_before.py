"""Payments from Kafka into Postgres, offsets kept in a table. BROKEN: the offsets are saved before the payments.

A driver that dies in between has promised records that it never wrote. The restarted program goes on behind them, and
no one will ever come back: they are lost (at most once).

    spark-submit offsets_before.py --bootstrap localhost:9092 --topic payments

The other wrong order is offsets_after.py.

Fixed version: offsets_together.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     );
#     create table progress (partition int primary key, next_offset bigint not null, batch bigint not null)
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# progress: select partition, next_offset from progress
# ///

from __future__ import annotations

import by_hand
import common

from harness import failpoint

SAVE = common.into("insert into payments (id, account, amount, currency, event_time) values %s")


def main() -> None:
    args = common.arguments(__doc__)
    spark, topic = common.session("offsets_before"), by_hand.Topic(args)
    while True:
        batch, start = by_hand.load(topic)
        end = topic.next_end(start)
        by_hand.store(batch, end)
        failpoint.reach("offsets-saved", batch=batch)
        topic.read(spark, start, end).foreachPartition(SAVE)


if __name__ == "__main__":
    main()
