"""Each payment with its account's total so far, by `applyInPandasWithState`, appended to a table in Postgres. BROKEN:
a batch may come again.

The state is a total for each account. A batch that is run again begins with the state before it and comes to the same
rows: the totals are right, and the table gets them twice.

    spark-submit totals_appended.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Fixed version: totals_kept.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table totals (id bigint, account text, total numeric(14, 2))
# sink:
#   postgres: totals
#   expected: |
#     select id, account, sum(amount) over (partition by account order by _offset) as total from ledger
#   key: [id]
# ///

from __future__ import annotations

import stream
import totals
from pyspark.sql import DataFrame

PUT = "insert into totals (id, account, total) values %s"


def batch(rows: DataFrame, number: int) -> None:
    """Write the totals that this batch has added."""
    stream.put(PUT, rows.collect())


def main() -> None:
    args = stream.arguments(__doc__)
    writing = totals.running(stream.payments(args)).writeStream.outputMode("update").foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
