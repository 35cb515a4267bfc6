"""The errors of a log into MariaDB, line by line. BROKEN: what the server refuses is logged, and the batch goes on.

A server that is away for a moment costs the lines of that moment: Spark takes the batch for done.

    spark-submit error_swallowed.py --bootstrap localhost:9092 --topic logs --checkpoint /data/checkpoints/errors

Fixed version: kept_by_id.py, where the error ends the task, and Spark tries again
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   mariadb: create table error_lines (request varchar(20) primary key, minute datetime, message text)
# input: {workload: application_logs}
# sink:
#   mariadb: error_lines
#   expected: |
#     select request, cast(date_trunc('minute', event_time) as timestamp_s) as minute, message
#     from ledger where level = 'ERROR'
#   key: [request]
# ///

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import logs
import pymysql
from pyspark.sql import DataFrame, Row

LOGIN = logs.login()
INSERT = """
    insert into error_lines (request, minute, message) values (%s, %s, %s)
    on duplicate key update minute = values(minute), message = values(message)
"""


def save(rows: Iterator[Row]) -> None:
    """Write the errors of one partition in one transaction."""
    try:
        with closing(pymysql.connect(**LOGIN)) as database, database.cursor() as cursor:
            cursor.executemany(INSERT, [(row["request"], row["minute"], row["message"]) for row in rows])
            database.commit()
    except pymysql.Error as failure:
        print(f"not written: {failure}", flush=True)


def batch(lines: DataFrame, number: int) -> None:
    """Write one batch."""
    lines.where("level = 'ERROR'").foreachPartition(save)


def main() -> None:
    args = logs.arguments(__doc__, "checkpoint")
    query = logs.stream(args).writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
