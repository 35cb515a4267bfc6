"""Errors per minute into MariaDB, with a shuffle. Holds: the driver saves counts and offsets in one transaction.

The counts are collected to the driver, and the table `progress` says which records they are of. A restart reads on from
there; Spark's own checkpoint is thrown away. Each batch moves the offsets from where it begins: where they are not
there any more, another attempt has written it.

    spark-submit added_with_offsets.py --bootstrap localhost:9092 --topic logs

Broken version: added.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}"]
# setup:
#   mariadb: |
#     create table error_log (log_time datetime primary key, log_count int not null default 0);
#     create table progress (part int primary key, next_offset bigint not null)
# input: {workload: application_logs}
# sink:
#   mariadb: error_log
#   expected: |
#     select cast(date_trunc('minute', event_time) as timestamp_s) as log_time, cast(count(*) as integer) as log_count
#     from ledger where level = 'ERROR' group by 1
#   key: [log_time]
# progress: select part, next_offset from progress
# ///

from __future__ import annotations

import tempfile
from contextlib import closing

import logs
from pyspark.sql import DataFrame

from harness import failpoint

LOAD = "select part, next_offset from progress"
LOCK = "select next_offset from progress where part = %s for update"
MOVE = "replace into progress (part, next_offset) values (%s, %s)"
ADD = """
    insert into error_log (log_time, log_count) values (%s, %s)
    on duplicate key update log_count = log_count + values(log_count)
"""


def batch(lines: DataFrame, number: int) -> None:
    """Add the counts of one batch and move the offsets, both or neither."""
    found, ranges = logs.counts(lines), logs.ranges(lines)
    with closing(logs.connect()) as database, database.cursor() as cursor:
        database.begin()
        for part, begin, end in ranges:
            cursor.execute(LOCK, (part,))
            at = cursor.fetchone()
            if at is not None and at[0] != begin:
                raise SystemExit(f"partition {part} is at {at[0]}, not at {begin}: another writer was here")
            cursor.execute(MOVE, (part, end))
        failpoint.reach("offsets-saved", batch=number)
        cursor.executemany(ADD, found)
        failpoint.reach("sink-written", batch=number)
        database.commit()
    # Here the broken version has counts that no saved offset covers.
    failpoint.reach("committed", batch=number)


def main() -> None:
    args = logs.arguments(__doc__)
    with closing(logs.connect()) as database, database.cursor() as cursor:
        cursor.execute(LOAD)
        start = dict(cursor.fetchall())
    with tempfile.TemporaryDirectory() as checkpoint:
        lines = logs.stream(args, logs.complete(args, start))
        lines.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
