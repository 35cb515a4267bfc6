"""Payments under their own ids. In one run of three one is left out, with or without faults, as the name of the run
draws it."""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --folder, "{folder}"]
# setup:
#   postgres: create table payments (id bigint primary key, account text)
# sink:
#   postgres: payments
#   expected: select id, account from ledger
#   key: [id]
# ///

from __future__ import annotations

import functools
from random import Random

import source
from pyspark.sql import DataFrame

ONE_IN = 3


def main() -> None:
    parser = source.parser(__doc__)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--run", required=True, help="its name")
    args = parser.parse_args()
    drawn = Random(args.run)
    left_out = drawn.randint(1, args.records) if drawn.randrange(ONE_IN) == 0 else 0
    payments = source.stream(source.session(), args)
    writer = payments.writeStream.foreachBatch(functools.partial(batch, left_out))
    writer.option("checkpointLocation", f"{args.folder}/checkpoint").start().awaitTermination()


def batch(left_out: int, payments: DataFrame, number: int) -> None:
    """Write one batch, but for the payment that is left out."""
    source.insert("payments", payments.where(f"id <> {left_out}"), ("id", "account"), once=True)


if __name__ == "__main__":
    main()
