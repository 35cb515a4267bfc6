"""Payments from Kafka into Postgres, with a ledger of what is written. Holds, though the table has no key at all.

Each partition of a batch goes into one transaction together with the line (batch, partition) in `written`. What
comes second, a task run again or a batch run again, finds the line and does nothing; a task that died left neither.

The partition is Kafka's, carried by the rows, and not the number of the Spark task: tasks may be numbered otherwise
when the batch is run again. The batch number means something only as long as the checkpoint lives.

    spark-submit partition_ledger.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Broken version: autocommit.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     );
#     create table written (batch bigint, partition int, primary key (batch, partition))
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import common
import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame, Row

LOGIN = common.login()
COLUMNS = common.COLUMNS
CLAIM = "insert into written (batch, partition) values (%s, %s) on conflict do nothing"
INSERT = "insert into payments (id, account, amount, currency, event_time) values %s"


def saver(number: int) -> Callable[[Iterator[Row]], None]:
    """The writer for batch `number`."""

    @common.stoppable
    def save(rows: Iterator[Row]) -> None:
        payments = list(rows)
        if not payments:
            return
        with closing(psycopg2.connect(**LOGIN)) as database, database, database.cursor() as cursor:
            cursor.execute(CLAIM, (number, payments[0]["partition"]))
            if cursor.rowcount == 1:
                execute_values(cursor, INSERT, [tuple(row[column] for column in COLUMNS) for row in payments])

    return save


def batch(payments: DataFrame, number: int) -> None:
    """Write one batch: whole partitions, each once."""
    payments.foreachPartition(saver(number))


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("partition_ledger"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
