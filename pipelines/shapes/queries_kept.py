"""Two queries of one program: all payments into one table in Postgres, the large ones into another. Holds: each payment
under its own id.

Each query reads the topic for itself and has a checkpoint of its own.

    spark-submit queries_kept.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/both

Broken version: queries_appended.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (id bigint primary key, account text, amount numeric(12, 2));
#     create table large (id bigint primary key, amount numeric(12, 2))
# sink:
#   - postgres: payments
#     query: payments
#     expected: |
#       select id, account, amount from ledger
#     key: [id]
#   - postgres: large
#     query: large
#     expected: |
#       select id, amount from ledger where amount > 50000
#     key: [id]
# ///

from __future__ import annotations

import stream
from pyspark.sql import DataFrame

PAYMENTS = "insert into payments (id, account, amount) values %s on conflict do nothing"
LARGE = "insert into large (id, amount) values %s on conflict do nothing"


def keep(payments: DataFrame, number: int) -> None:
    """Write one batch of all payments."""
    stream.put(PAYMENTS, payments.select("id", "account", "amount").collect())


def report(payments: DataFrame, number: int) -> None:
    """Write one batch of the large ones."""
    stream.put(LARGE, payments.select("id", "amount").collect())


def main() -> None:
    args = stream.arguments(__doc__)
    payments = stream.payments(args)
    for name, rows, batch in (("payments", payments, keep), ("large", payments.where("amount > 50000"), report)):
        writing = rows.writeStream.queryName(name).foreachBatch(batch)
        writing.option("checkpointLocation", f"{args.checkpoint}/{name}").start()
    payments.sparkSession.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
