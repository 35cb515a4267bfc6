"""Payments from Kafka into a table of SQLite, by the driver: payments and the batch's number in one transaction.

A batch that is cut leaves nothing. One that comes again finds its number, and is passed over.

    spark-submit sqlite_with_batch.py --bootstrap localhost:9092 --topic payments --into /data/payments.db \
        --checkpoint /data/checkpoints/payments

Broken version: sqlite_appended.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --into, "{python.path}/payments.db",
#   --checkpoint, "{checkpoint}"]
# sink:
#   python: read_sqlite:payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
#   view: complete
# ///

from __future__ import annotations

import sqlite3

import batches
import pyarrow as pa

TABLES = (
    "create table if not exists payments (id integer, account text, amount text, currency text, event_time text)",
    "create table if not exists batches (number integer primary key)",
)
ROW = "insert into payments values (?, ?, ?, ?, ?)"


def main() -> None:
    args = batches.arguments(__doc__)
    database = sqlite3.connect(args.into, isolation_level=None, check_same_thread=False)
    for table in TABLES:
        database.execute(table)

    def save(batch: pa.Table, number: int) -> None:
        """Write one batch, unless it is there."""
        rows = [tuple(map(str, row.values())) for row in batch.to_pylist()]
        database.execute("begin immediate")
        try:
            if database.execute("insert or ignore into batches values (?)", (number,)).rowcount:
                database.executemany(ROW, rows[: len(rows) // 2])
                batches.half_written(number)
                database.executemany(ROW, rows[len(rows) // 2 :])
                batches.all_written(number)
            database.execute("commit")
        except BaseException:
            database.execute("rollback")
            raise

    batches.run(args, save)


if __name__ == "__main__":
    main()
