"""Item 3: floating point numbers that an aggregate only picks, so that no order of the records rounds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.checkers.cells import Row
from harness.scenario import Kind
from tests.corpus.case import adversary, held, violated
from tests.corpus.run_builder import RunBuilder, blame
from tests.folders import PER_RECORD, TOTALS, TYPES

REAL = ("double precision", "float")
ONCE = [*TYPES["payments"][:2], ("amount", *REAL)]
TOPS = [("account", "text", "text"), ("top", *REAL)]


def with_a_large_one(run: RunBuilder) -> None:
    """The last amount is a thousand million: a billionth part of it is more than most others."""
    run.records[-1]["amount"] = "1000000000.00"
    run.calm()


def other(rows: list[Row], key: str, cell: str) -> list[Row]:
    """The same rows, but for the last cell of that key."""
    return [(*row[:-1], cell) if row[0] == key else row for row in rows]


@adversary(
    3,
    violated(Kind.WRONG_AGGREGATE, 1, blame(), shown=("1 repetition",)),
    twin=held("1 repetition"),
)
def a_record_of_a_distinct_effect_has_another_amount(run: RunBuilder) -> Iterator[str]:
    """Each record once, by DISTINCT, with its amount as a double. One amount is another, by less than a billionth part
    of the largest, and was called a sum that rounds."""
    run.sink(
        replace(PER_RECORD, expected="select distinct id, account, amount::double as amount from ledger"), types=[ONCE]
    )
    with_a_large_one(run)
    run.injection(1)
    run.tables = [other(run.rows((0, 40)), "5", "5.5")]
    yield "the amount is right"
    run.tables = [run.rows((0, 40))]


@adversary(
    3,
    violated(Kind.WRONG_AGGREGATE, 1, blame(3, point="batch-planned"), shown=("1 loss",), fits=None),
    twin=held("1 loss"),
)
def a_maximum_of_an_account_is_another(run: RunBuilder) -> Iterator[str]:
    """The greatest amount of each account as a double. One lost its cents, and was said to differ by rounding, since
    another account has a thousand million."""
    expected = "select account, max(amount)::double as top from ledger group by account"
    run.sink(replace(TOTALS, expected=expected), types=[TOPS])
    with_a_large_one(run)
    run.injection(3, point="batch-planned", holds=30)
    run.tables = [other(run.rows((0, 40)), "a0", "36.0")]
    yield "the maximum is right"
    run.tables = [run.rows((0, 40))]
