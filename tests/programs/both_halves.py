"""A query with two sources on one topic, one of them slower; each payment is written once for each source."""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --folder, "{folder}"]
# setup:
#   postgres: create table halves (half text, id bigint)
# sink:
#   postgres: halves
#   expected: select 'fast' as half, id from ledger union all select 'slow' as half, id from ledger
#   key: [half, id]
# ///

from __future__ import annotations

import argparse
import functools

import source
from pyspark.sql import DataFrame

FAST, SLOW = 100, 80


def main() -> None:
    parser = source.parser(__doc__)
    parser.add_argument("--once", action="store_true", help="write each row once; its table has a key")
    args = parser.parse_args()
    spark = source.session()
    fast, slow = (source.stream(spark, args, max_records=most) for most in (FAST, SLOW))
    both = fast.selectExpr("'fast' as half", "id").union(slow.selectExpr("'slow' as half", "id"))
    writer = both.writeStream.foreachBatch(functools.partial(batch, args))
    writer.option("checkpointLocation", f"{args.folder}/checkpoint").start().awaitTermination()


def batch(args: argparse.Namespace, rows: DataFrame, number: int) -> None:
    """Write one batch."""
    source.insert("halves", rows, ("half", "id"), once=args.once)


if __name__ == "__main__":
    main()
