"""Errors per minute into MariaDB, kept as counters. BROKEN: a batch that runs again is added again.

`log_count + values(log_count)` is another value each time. Each row commits by itself, so that a batch which was cut in
its middle is added again from its first row.

    spark-submit added.py --bootstrap localhost:9092 --topic logs --checkpoint /data/checkpoints/errors

Fixed versions: added_with_offsets.py, added_by_partition.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   mariadb: create table error_log (log_time datetime primary key, log_count int not null default 0)
# input: {workload: application_logs}
# sink:
#   mariadb: error_log
#   expected: |
#     select cast(date_trunc('minute', event_time) as timestamp_s) as log_time, cast(count(*) as integer) as log_count
#     from ledger where level = 'ERROR' group by 1
#   key: [log_time]
# ///

from __future__ import annotations

from contextlib import closing

import logs
from pyspark.sql import DataFrame

ADD = """
    insert into error_log (log_time, log_count) values (%s, %s)
    on duplicate key update log_count = log_count + values(log_count)
"""


def batch(lines: DataFrame, number: int) -> None:
    """Add the counts of one batch, minute by minute."""
    found = logs.counts(lines)
    with closing(logs.connect(autocommit=True)) as database, database.cursor() as cursor:
        for minute in found:
            cursor.execute(ADD, minute)


def main() -> None:
    args = logs.arguments(__doc__, "checkpoint")
    query = logs.stream(args).writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
