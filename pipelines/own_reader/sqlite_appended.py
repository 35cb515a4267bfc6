"""Payments from Kafka into a table of SQLite, by the driver. BROKEN: each row is committed by itself, without a key.

When the driver dies after rows are there and before Spark has written `commits/N`, the restarted query runs batch N
again, and inserts the same payments again.

    spark-submit sqlite_appended.py --bootstrap localhost:9092 --topic payments --into /data/payments.db \
        --checkpoint /data/checkpoints/payments

Fixed version: sqlite_with_batch.py
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

TABLE = "create table if not exists payments (id integer, account text, amount text, currency text, event_time text)"
ROW = "insert into payments values (?, ?, ?, ?, ?)"


def main() -> None:
    args = batches.arguments(__doc__)
    database = sqlite3.connect(args.into, isolation_level=None, check_same_thread=False)
    database.execute(TABLE)

    def save(batch: pa.Table, number: int) -> None:
        """Append one batch."""
        rows = [tuple(map(str, row.values())) for row in batch.to_pylist()]
        for at, row in enumerate(rows):
            if at == len(rows) // 2:
                batches.half_written(number)
            database.execute(ROW, row)
        batches.all_written(number)

    batches.run(args, save)


if __name__ == "__main__":
    main()
