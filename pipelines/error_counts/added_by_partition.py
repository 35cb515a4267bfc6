"""Errors per minute into MariaDB, without a shuffle. Holds: each Kafka partition's counts go with its offset.

A task reads one partition of Kafka. It adds the partition's counts and moves the partition's offset in one transaction.
Records before the offset have been counted by a task or an attempt before, also where the batch was cut otherwise then,
and are left out. Spark's checkpoint says what to read, the table `progress` what is done.

A batch that begins beyond that ends the query: what lies between was never counted. So the topic may have no gaps: it
is neither compacted nor written in transactions.

    spark-submit added_by_partition.py --bootstrap localhost:9092 --topic logs --checkpoint /data/checkpoints/errors

Broken version: added.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
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
# ///

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import logs
import pymysql
from pyspark.sql import DataFrame, Row

LOGIN = logs.login()
BEGIN = "insert ignore into progress (part, next_offset) values (%s, %s)"
DONE = "select next_offset from progress where part = %s for update"
MOVE = "update progress set next_offset = %s where part = %s"
ADD = """
    insert into error_log (log_time, log_count) values (%s, %s)
    on duplicate key update log_count = log_count + values(log_count)
"""


@logs.stoppable
def save(rows: Iterator[Row]) -> None:
    """Write one partition: all of it, once."""
    lines = list(rows)
    if not lines:
        return
    part, begin, end = lines[0]["partition"], lines[0]["offset"], lines[-1]["offset"] + 1
    with closing(pymysql.connect(**LOGIN)) as database, database.cursor() as cursor:
        cursor.execute(BEGIN, (part, begin))
        cursor.execute(DONE, (part,))
        (done,) = cursor.fetchone()
        if done < begin:
            raise ValueError(
                f"partition {part}: the batch begins at {begin}, and no attempt has counted from {done} on"
            )
        if done < end:
            new = (line for line in lines if line["offset"] >= done and line["level"] == "ERROR")
            # In one order, so that two partitions do not wait for each other's minutes in a circle.
            cursor.executemany(ADD, sorted(Counter(line["minute"] for line in new).items()))
            cursor.execute(MOVE, (end, part))
        database.commit()


def batch(lines: DataFrame, number: int) -> None:
    """Write one batch, a task for each partition of Kafka."""
    lines.foreachPartition(save)


def main() -> None:
    args = logs.arguments(__doc__, "checkpoint")
    query = logs.stream(args).writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
