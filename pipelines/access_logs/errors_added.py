"""Errors per minute from an access log, kept as counters. BROKEN: a batch that runs again is added again.

It looks like an upsert, there is even a primary key, but `errors + excluded.errors` is another value each time. After
a crash between this insert and Spark's offset commit the minutes of that batch are too high, and no row is there
twice to show it.

    spark-submit errors_added.py --bootstrap localhost:9092 --topic logs --checkpoint /data/checkpoints/errors

Fixed version: errors_added_once.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table errors_per_minute (minute timestamp primary key, errors bigint)
# input: {workload: access_logs}
# sink:
#   postgres: errors_per_minute
#   expected: |
#     select date_trunc('minute', event_time) as minute, count(*) as errors
#     from ledger where level = 'ERROR' group by 1
#   key: [minute]
# ///

from __future__ import annotations

from contextlib import closing

import lines
import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame

ADD = """
    insert into errors_per_minute (minute, errors) values %s
    on conflict (minute) do update set errors = errors_per_minute.errors + excluded.errors
"""


def batch(errors: DataFrame, number: int) -> None:
    """Add the counts of one batch."""
    counts = errors.groupBy("minute").count().collect()
    with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
        execute_values(cursor, ADD, [tuple(row) for row in counts])


def main() -> None:
    args = lines.arguments(__doc__)
    query = lines.errors(args).writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
