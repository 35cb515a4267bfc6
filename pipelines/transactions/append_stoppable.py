"""append.py with a failpoint at the end of each batch: the sink has it, and Spark has not begun `commits/N`. BROKEN.

No file says that a batch has come so far, so only the program can. What a crash there does is what one does while
`commits/N` is written: the batch is inserted again.

    spark-submit append_stoppable.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Fixed version: upsert_stoppable.py
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

import append
import common
from pyspark.sql import DataFrame

from harness import failpoint


def batch(payments: DataFrame, number: int) -> None:
    """Append one batch, and stop there if asked to."""
    append.batch(payments, number)
    failpoint.reach("sink-written", batch=number)


def main() -> None:
    args = common.arguments(__doc__, "checkpoint")
    payments = common.stream(common.session("append_stoppable"), args)
    query = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
