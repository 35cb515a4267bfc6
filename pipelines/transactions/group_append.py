"""Payments from Kafka into Postgres, offsets kept by Kafka. BROKEN: an append sink before the offset commit.

The consumer group's committed offsets say where to go on. A driver that dies after the payments are in the table and
before Kafka has heard of it reads the same slice again and appends it again. No order of the two steps can mend that:
the table and the group are two systems.

    spark-submit group_append.py --bootstrap localhost:9092 --topic payments --group ledger

Fixed version: group_upsert.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --group, "{group}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# progress: group
# ///

from __future__ import annotations

import by_hand
import common

from harness import failpoint

SAVE = common.into("insert into payments (id, account, amount, currency, event_time) values %s")


def main() -> None:
    args = common.arguments(__doc__, "group")
    spark, topic = common.session("group_append"), by_hand.Topic(args, args.group)
    while True:
        batch, start = topic.committed()
        end = topic.next_end(start)
        topic.read(spark, start, end).foreachPartition(common.stoppable(SAVE, batch))
        failpoint.reach("sink-written", batch=batch)
        topic.commit(batch, end)


if __name__ == "__main__":
    main()
