"""Two queries of one program: all payments into one table in Postgres, the large ones into another. BROKEN: appended.

Each query reads the topic for itself and has a checkpoint of its own. A driver that dies has one batch in flight in
each, and they stand at different offsets.

    spark-submit queries_appended.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/both

Fixed version: queries_kept.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (id bigint, account text, amount numeric(12, 2));
#     create table large (id bigint, amount numeric(12, 2))
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

PAYMENTS = "insert into payments (id, account, amount) values %s"
LARGE = "insert into large (id, amount) values %s"


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
