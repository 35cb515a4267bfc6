"""Payments from Kafka into Postgres over one session, which the driver keeps between its batches.

The server ends a session that is idle for three seconds, without a transaction; then the driver opens another one.
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --folder, "{folder}"]
# setup:
#   postgres: create table payments (id bigint primary key, account text, amount numeric(12, 2))
# sink:
#   postgres: payments
#   expected: select id, account, amount from ledger
#   key: [id]
# ///

from __future__ import annotations

from typing import Any

import psycopg2
import source
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame

from harness import failpoint

INSERT = "insert into payments (id, account, amount) values %s on conflict (id) do nothing"


class Sessions:
    """The one session with the database."""

    def __init__(self) -> None:
        self._open()

    def _open(self) -> None:
        self.database = psycopg2.connect("")  # by libpq's PG* variables
        self.database.autocommit = True
        with self.database.cursor() as cursor:
            cursor.execute("set idle_session_timeout = '3s'")

    def insert(self, rows: list[tuple[Any, ...]]) -> None:
        """Insert rows in one statement, in a new session if the server has ended the old one."""
        try:
            self._insert(rows)
        except psycopg2.OperationalError:
            self._open()
            self._insert(rows)

    def _insert(self, rows: list[tuple[Any, ...]]) -> None:
        with self.database.cursor() as cursor:
            execute_values(cursor, INSERT, rows)


def main() -> None:
    args = source.parser(__doc__).parse_args()
    sessions = Sessions()

    def batch(payments: DataFrame, number: int) -> None:
        rows = [(row["id"], row["account"], row["amount"]) for row in payments.collect()]
        failpoint.reach("rows-collected", batch=number)
        if rows:
            sessions.insert(rows)

    writer = source.stream(source.session(), args).writeStream.foreachBatch(batch)
    writer.option("checkpointLocation", f"{args.folder}/checkpoint").start().awaitTermination()


if __name__ == "__main__":
    main()
