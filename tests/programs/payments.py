"""Payments from Kafka into Postgres, as wrong as it is asked to be: what it keeps, how it writes, when it dies.

It has its addresses from the environment; the columns are those of the transactions workload.
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --folder, "{folder}"]
# setup:
#   postgres: create table payments (id bigint, account text, amount numeric(12, 2))
# sink:
#   postgres: payments
#   expected: select id, account, amount from ledger
#   key: [id]
# ///

from __future__ import annotations

import argparse
import functools
from pathlib import Path

import source
from pyspark.sql import DataFrame


def main() -> None:
    parser = source.parser(__doc__)
    parser.add_argument("--columns", default="id,account,amount")
    parser.add_argument("--once", action="store_true", help="write each id once; its table has a key")
    parser.add_argument("--each", action="store_true", help="commit each row by itself")
    parser.add_argument("--where", default="true", help="keep only these")
    parser.add_argument("--every", help="the trigger's interval, e.g. 5 seconds")
    parser.add_argument("--dies-at", type=int, help="end with a failure instead of this batch and any later one")
    parser.add_argument("--never-again", action="store_true", help="a second attempt ends with a failure at once")
    args = parser.parse_args()
    born = Path(args.folder) / "born"
    if args.never_again and born.exists():
        raise SystemExit("fatal: the first attempt has left its mark")
    born.touch()
    payments = source.stream(source.session(), args).where(args.where)
    writer = payments.writeStream.foreachBatch(functools.partial(batch, args))
    writer = writer.trigger(processingTime=args.every) if args.every else writer
    writer.option("checkpointLocation", f"{args.folder}/checkpoint").start().awaitTermination()


def batch(args: argparse.Namespace, payments: DataFrame, number: int) -> None:
    """Write one batch."""
    if args.dies_at is not None and number >= args.dies_at:
        raise RuntimeError(f"fatal: no such account in batch {number}")
    source.insert("payments", payments, args.columns.split(","), once=args.once, each=args.each)


if __name__ == "__main__":
    main()
