"""Payments from Kafka into Postgres, offsets kept in a table. Holds: payments and offsets go into one transaction.

Each partition of a slice moves its own offset from `start` to `end` and inserts its payments, both or neither. If the
offset is not at `start` any more, another writer has written this slice: a task run again, or an attempt before this
one.

    spark-submit offsets_together.py --bootstrap localhost:9092 --topic payments

Broken versions: offsets_before.py, offsets_after.py
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

from collections.abc import Callable, Iterator
from contextlib import closing

import by_hand
import common
import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import Row

from harness import failpoint

LOGIN = common.login()
COLUMNS = common.COLUMNS
BEGIN = "insert into progress (partition, next_offset, batch) values (%s, %s, %s) on conflict do nothing"
MOVE = "update progress set next_offset = %s, batch = %s where partition = %s and next_offset = %s"
INSERT = "insert into payments (id, account, amount, currency, event_time) values %s"


def saver(batch: int, start: by_hand.Offsets, end: by_hand.Offsets) -> Callable[[Iterator[Row]], None]:
    """The writer for one slice."""

    def save(rows: Iterator[Row]) -> None:
        payments = list(rows)
        if not payments:
            return
        at = payments[0]["partition"]
        with closing(psycopg2.connect(**LOGIN)) as database, database, database.cursor() as cursor:
            cursor.execute(BEGIN, (at, start[at], batch))
            cursor.execute(MOVE, (end[at], batch, at, start[at]))
            moved = cursor.rowcount == 1
            # The two places where the broken versions are caught; here both are inside the transaction.
            failpoint.reach("offsets-saved", batch=batch)
            if moved:
                execute_values(cursor, INSERT, [tuple(row[column] for column in COLUMNS) for row in payments])
            failpoint.reach("sink-written", batch=batch)

    return save


def main() -> None:
    args = common.arguments(__doc__)
    spark, topic = common.session("offsets_together"), by_hand.Topic(args)
    while True:
        batch, start = by_hand.load(topic)
        end = topic.next_end(start)
        topic.read(spark, start, end).foreachPartition(saver(batch, start, end))
        # Where offsets_after.py has payments that no offset knows of.
        failpoint.reach("committed", batch=batch)


if __name__ == "__main__":
    main()
