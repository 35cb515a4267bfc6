"""One row for all payments: how many there are, and what they come to. Broken unless it is told to add `--once`."""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --folder, "{folder}"]
# setup:
#   postgres: |
#     create table total (one int primary key, n bigint, amount numeric(18, 2));
#     create table added (batch bigint primary key)
# sink:
#   postgres: total
#   expected: select 1 as one, count(*) as n, sum(amount)::decimal(18, 2) as amount from ledger
#   key: [one]
# ///

from __future__ import annotations

import argparse
import functools
from contextlib import closing
from decimal import Decimal

import psycopg2
import source
from pyspark.sql import DataFrame

from harness import failpoint

ADD = """
    insert into total (one, n, amount) values (1, %s, %s)
    on conflict (one) do update set n = total.n + excluded.n, amount = total.amount + excluded.amount
"""
CLAIM = "insert into added (batch) values (%s) on conflict do nothing"


def main() -> None:
    parser = source.parser(__doc__)
    parser.add_argument("--once", action="store_true", help="remember the batch with the total")
    parser.add_argument("--lose", type=int, help="never add this batch")
    parser.add_argument("--lose-records", type=int, help="nor any more of it than so many records")
    args = parser.parse_args()
    payments = source.stream(source.session(), args)
    writer = payments.writeStream.foreachBatch(functools.partial(batch, args))
    writer.option("checkpointLocation", f"{args.folder}/checkpoint").start().awaitTermination()


def batch(args: argparse.Namespace, payments: DataFrame, number: int) -> None:
    """Add one batch."""
    amounts = [row.amount for row in payments.select("amount").collect()]
    if number == args.lose:
        amounts = amounts[args.lose_records :] if args.lose_records else []
    if amounts:
        add(args, amounts, number)
    failpoint.reach("sink-written", batch=number)


def add(args: argparse.Namespace, amounts: list[Decimal], number: int) -> None:
    """Add amounts to the total, in one transaction."""
    with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
        cursor.execute(CLAIM, (number,))
        if cursor.rowcount == 1 or not args.once:
            cursor.execute(ADD, (len(amounts), sum(amounts)))


if __name__ == "__main__":
    main()
