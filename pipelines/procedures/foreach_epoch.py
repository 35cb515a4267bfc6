"""Payments into Postgres by a `foreach` writer that skips what it has recorded under (partition, epoch). BROKEN: a
partition of Spark is a number of a task, not a set of records.

`open(partition, epoch)` says what a task is about to write, and rows and this pair go into one transaction. The pair
means the same rows only as long as Spark cuts the batch in the same way. Here the program comes back with fewer tasks
than before its crash, as it would on a cluster that has shrunk: what was recorded as partition 0 were other rows than
those that partition 0 now has. They are skipped and lost, and rows that were written under another number come again
(SPARK-28650).

    spark-submit foreach_epoch.py --bootstrap localhost:9092 --topic payments \\
        --checkpoint /data/checkpoints/payments --starts /data/checkpoints/starts

Fixed version: foreach_offset.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}",
#        --starts, "{folder}/starts"]
# setup:
#   postgres: |
#     create table payments (part int, off bigint, id bigint, account text, amount numeric(12, 2));
#     create table written (partition bigint, epoch bigint, primary key (partition, epoch))
# sink:
#   postgres: payments
#   expected: select _partition as part, _offset as off, id, account, amount from ledger
#   key: [id]
# ///

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg2
import records
from psycopg2.extras import execute_values
from pyspark.sql import Row

FOUND = "select from written where partition = %s and epoch = %s"
CLAIM = "insert into written (partition, epoch) values (%s, %s)"
INSERT = "insert into payments (part, off, id, account, amount) values %s"


class Writer:
    """One partition of one epoch in one transaction, once."""

    def __init__(self, where: dict[str, Any]) -> None:
        self._where = where

    def open(self, partition: int, epoch: int) -> bool:
        """Return whether it is still to be written."""
        self._pair = (partition, epoch)
        self._rows: list[tuple[Any, ...]] = []
        with closing(psycopg2.connect(**self._where)) as database, database.cursor() as cursor:
            cursor.execute(FOUND, self._pair)
            return cursor.fetchone() is None

    def process(self, row: Row) -> None:
        """Keep one payment until all are there."""
        self._rows.append(tuple(row))

    def close(self, error: Exception | None) -> None:
        """Write the payments and the pair. Spark calls this also where `open` said no."""
        if error is None and self._rows:
            with closing(psycopg2.connect(**self._where)) as database, database, database.cursor() as cursor:
                cursor.execute(CLAIM, self._pair)
                execute_values(cursor, INSERT, self._rows)


def main() -> None:
    records.write_rows(records.arguments(__doc__, "starts"), Writer(records.postgres()))


if __name__ == "__main__":
    main()
