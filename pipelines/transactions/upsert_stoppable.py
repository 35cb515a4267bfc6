"""upsert.py with a failpoint at the end of each batch: the sink has it, and Spark has not begun `commits/N`. Holds.

No file says that a batch has come so far, so only the program can. A crash there has the batch written again, each
payment under its own id.

    spark-submit upsert_stoppable.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Broken version: append_stoppable.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import common
import upsert
from pyspark.sql import DataFrame

from harness import failpoint


def batch(payments: DataFrame, number: int) -> None:
    """Write one batch, and stop there if asked to."""
    upsert.batch(payments, number)
    failpoint.reach("sink-written", batch=number)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("upsert_stoppable"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
