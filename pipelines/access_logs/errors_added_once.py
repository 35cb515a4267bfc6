"""Errors per minute from an access log, kept as counters. Holds: the number of the batch is kept with the counts.

Counts and batch number go into one transaction. A batch that runs again finds its number and adds nothing. The
numbers belong to the checkpoint: throw that away and they restart, and batches would be taken for done.

    spark-submit errors_added_once.py --bootstrap localhost:9092 --topic logs --checkpoint /data/checkpoints/errors

Broken version: errors_added.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table errors_per_minute (minute timestamp primary key, errors bigint);
#     create table added (batch bigint primary key)
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

CLAIM = "insert into added (batch) values (%s) on conflict do nothing"
ADD = """
    insert into errors_per_minute (minute, errors) values %s
    on conflict (minute) do update set errors = errors_per_minute.errors + excluded.errors
"""


def batch(errors: DataFrame, number: int) -> None:
    """Add the counts of one batch, unless they were added before."""
    counts = errors.groupBy("minute").count().collect()
    with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
        cursor.execute(CLAIM, (number,))
        if cursor.rowcount == 1:
            execute_values(cursor, ADD, [tuple(row) for row in counts])


def main() -> None:
    args = lines.arguments(__doc__)
    query = lines.errors(args).writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
