"""Each payment with its account's total so far, by `applyInPandasWithState`, into a table with a key in Postgres.
Holds: the table drops what comes again.

The state goes back with the batch. So a batch that is run again counts no payment twice, and its rows are the same.

    spark-submit totals_kept.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/it

Broken version: totals_appended.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table totals (id bigint primary key, account text, total numeric(14, 2))
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

PUT = "insert into totals (id, account, total) values %s on conflict do nothing"


def batch(rows: DataFrame, number: int) -> None:
    """Write the totals that this batch has added."""
    stream.put(PUT, rows.collect())


def main() -> None:
    args = stream.arguments(__doc__)
    writing = totals.running(stream.payments(args)).writeStream.outputMode("update").foreachBatch(batch)
    writing.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
