"""Payments from Kafka into Postgres with Spark's own JDBC writer. BROKEN: it can only append.

`df.write.jdbc` opens one transaction per partition and keeps no note of the batch. A batch that is run again is
written again.

    spark-submit append_jdbc.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Fixed version: upsert.py (or a staging table and one `insert … on conflict` from it)
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import os

import common
from pyspark.sql import DataFrame

URL = "jdbc:postgresql://{PGHOST}:{PGPORT}/{PGDATABASE}".format_map(os.environ)
LOGIN = {
    "driver": "org.postgresql.Driver",
    "user": os.environ["PGUSER"],
    "password": os.environ.get("PGPASSWORD", ""),
    "options": os.environ.get("PGOPTIONS", ""),
}


def batch(payments: DataFrame, number: int) -> None:
    """Append one batch."""
    payments.select(*common.COLUMNS).write.jdbc(URL, "payments", mode="append", properties=LOGIN)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("append_jdbc"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
