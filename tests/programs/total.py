"""One row for all payments: how many there are, and what they come to. Broken unless it is told to add `--once`."""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --folder, "{folder}"]
# setup:
#   postgres: |
#     create table total (n bigint not null, amount numeric(18, 2) not null);
#     create table added (batch bigint primary key)
# sink:
#   postgres: select n, amount from total
#   effect: select count(*) as n, sum(amount)::decimal(18, 2) as amount from ledger
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

ADD = "update total set n = n + %s, amount = amount + %s"
FIRST = "insert into total (n, amount) select %s, %s where not exists (select from total)"
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
    more = (len(amounts), sum(amounts))
    with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
        cursor.execute(CLAIM, (number,))
        if args.once and cursor.rowcount == 0:
            return
        cursor.execute(ADD, more)
        if cursor.rowcount == 0:
            cursor.execute(FIRST, more)


if __name__ == "__main__":
    main()
