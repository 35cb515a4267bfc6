"""Payments from Kafka into Postgres, offsets kept in a table. BROKEN: the offsets are saved after the payments.

A driver that dies in between has written payments that the table of offsets knows nothing of. The restarted program
reads the same slice again and appends it again (at least once).

    spark-submit offsets_after.py --bootstrap localhost:9092 --topic payments

The other wrong order is offsets_before.py.

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
    spark, topic = common.session("offsets_after"), by_hand.Topic(args)
    while True:
        batch, start = by_hand.load(topic)
        end = topic.next_end(start)
        topic.read(spark, start, end).foreachPartition(SAVE)
        failpoint.reach("sink-written", batch=batch)
        by_hand.store(batch, end)


if __name__ == "__main__":
    main()
