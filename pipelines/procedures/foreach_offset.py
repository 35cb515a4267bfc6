"""Payments into Postgres by a `foreach` writer, each under its place in Kafka. Holds: the rows say what they are.

However Spark cuts the batch into tasks, and whatever their numbers are: a row that is there is not inserted again. The
program comes back with fewer tasks after a crash, as the broken version does.

    spark-submit foreach_offset.py --bootstrap localhost:9092 --topic payments \\
        --checkpoint /data/checkpoints/payments --starts /data/checkpoints/starts

Broken version: foreach_epoch.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}",
#        --starts, "{folder}/starts"]
# setup:
#   postgres: |
#     create table payments (
#       part int, off bigint, id bigint, account text, amount numeric(12, 2), primary key (part, off)
#     )
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

INSERT = "insert into payments (part, off, id, account, amount) values %s on conflict (part, off) do nothing"


class Writer:
    """The rows of one task in one transaction."""

    def __init__(self, where: dict[str, Any]) -> None:
        self._where = where

    def open(self, partition: int, epoch: int) -> bool:
        """Begin with no rows."""
        self._rows: list[tuple[Any, ...]] = []
        return True

    def process(self, row: Row) -> None:
        """Keep one payment until all are there."""
        self._rows.append(tuple(row))

    def close(self, error: Exception | None) -> None:
        """Write them."""
        if error is None and self._rows:
            with closing(psycopg2.connect(**self._where)) as database, database, database.cursor() as cursor:
                execute_values(cursor, INSERT, self._rows)


def main() -> None:
    records.write_rows(records.arguments(__doc__, "starts"), Writer(records.postgres()))


if __name__ == "__main__":
    main()
