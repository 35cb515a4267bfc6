"""The errors of a log into MariaDB, offsets kept by Kafka. BROKEN: what Kafka was not told is appended again.

A crash after the lines and before the offset commit leaves the group where it was.

    spark-submit appended_group.py --bootstrap localhost:9092 --topic logs --group errors

Fixed version: kept_by_id_group.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --group, "{group}"]
# setup:
#   mariadb: create table error_lines (request varchar(20), minute datetime, message text)
# input: {workload: application_logs}
# sink:
#   mariadb: error_lines
#   expected: |
#     select request, cast(date_trunc('minute', event_time) as timestamp_s) as minute, message
#     from ledger where level = 'ERROR'
#   key: [request]
# progress: group
# ///

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing

import logs
import pymysql
from pyspark.sql import DataFrame, Row

from harness import failpoint

LOGIN = logs.login()
INSERT = "insert into error_lines (request, minute, message) values (%s, %s, %s)"


@logs.stoppable
def save(rows: Iterator[Row]) -> None:
    """Write the errors of one partition in one transaction."""
    with closing(pymysql.connect(**LOGIN)) as database, database.cursor() as cursor:
        cursor.executemany(INSERT, [(row["request"], row["minute"], row["message"]) for row in rows])
        database.commit()


def main() -> None:
    args = logs.arguments(__doc__, "group")
    group = logs.Group(args)

    def batch(lines: DataFrame, number: int) -> None:
        lines.where("level = 'ERROR'").foreachPartition(save)
        failpoint.reach("sink-written", batch=number)
        group.commit(logs.ranges(lines))

    with tempfile.TemporaryDirectory() as checkpoint:
        lines = logs.stream(args, group.next_offsets())
        lines.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
