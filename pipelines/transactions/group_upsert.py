"""Payments from Kafka into Postgres, offsets kept by Kafka. Holds: writing a slice again changes nothing.

The order matters as much as the key: payments first, then the offset commit. A crash in between costs only a slice
written twice under the same ids.

    spark-submit group_upsert.py --bootstrap localhost:9092 --topic payments --group ledger

Broken version: group_append.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --group, "{group}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
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

SAVE = common.into("""
    insert into payments (id, account, amount, currency, event_time) values %s
    on conflict (id) do update set
        account = excluded.account, amount = excluded.amount,
        currency = excluded.currency, event_time = excluded.event_time
""")


def main() -> None:
    args = common.arguments(__doc__, "group")
    spark, topic = common.session("group_upsert"), by_hand.Topic(args, args.group)
    while True:
        batch, start = topic.committed()
        end = topic.next_end(start)
        topic.read(spark, start, end).foreachPartition(common.stoppable(SAVE, batch))
        failpoint.reach("sink-written", batch=batch)
        topic.commit(batch, end)


if __name__ == "__main__":
    main()
