"""Item 6: the pipeline is right, and `expected` is wrong; or the pipeline is not deterministic. No fault did it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Kind, Order
from tests.corpus.case import adversary, error, held, inconclusive, violated
from tests.corpus.counters import COUNTED
from tests.corpus.run_builder import RunBuilder, blame
from tests.folders import PER_RECORD, TOTALS, TYPES

CORRUPTED, LOST, UNEXPECTED = Kind.CORRUPTED, Kind.LOST, Kind.UNEXPECTED
DOUBLE = replace(PER_RECORD, expected="select id, account, amount * 2 as amount from ledger")
NUMBERED = "select id, account, row_number() over (partition by account{}) as amount from ledger"
TEN = "select id, account, amount from ledger{} limit 10"


@adversary(
    6,
    error(
        "expected rows and pipeline do not fit: 39 rows are corrupted in",
        kinds={Kind.CORRUPTED: 39},
        without_faults=True,
    ),
    twin=violated(Kind.CORRUPTED, 39, blame()),
)
def effect_asks_for_other_amounts(run: RunBuilder) -> Iterator[str]:
    """`expected` doubles each amount, and the pipeline never did: every row looks corrupted, and a fault struck."""
    run.injection(1)
    honest = run.rows((0, 40))
    run.sink(DOUBLE)
    run.found(tables=[honest[:20]])
    run.tables = [honest]
    run.calm(*[[honest]] * 3)
    yield "the baseline runs show the doubled amounts"
    run.calm()


@adversary(6, error("gives other rows when the ledger is in another order"), twin=held("1 repetition"))
def effect_with_ties(run: RunBuilder) -> Iterator[str]:
    """`row_number()` without an order: the rows of this run happen to lie as the pipeline took them."""
    run.sink(replace(PER_RECORD, expected=NUMBERED.format("")))
    run.injection(1)
    yield "it is ordered by a column that no two records share"
    run.sink(replace(PER_RECORD, expected=NUMBERED.format(" order by id")))


@adversary(6, error("gives other rows when the ledger is in another order"), twin=held("1 repetition"))
def effect_that_takes_any_ten(run: RunBuilder) -> Iterator[str]:
    """`limit` without an order: any ten rows would do, and the sink is held to ten of them."""
    run.sink(replace(PER_RECORD, expected=TEN.format("")))
    run.injection(0)
    yield "it is ordered by a column that no two records share"
    run.sink(replace(PER_RECORD, expected=TEN.format(" order by id")))


@adversary(
    6,
    inconclusive("not deterministic without faults", kinds={LOST: 1}, fits=None),
    twin=violated(Kind.LOST, 1, blame(point="batch-planned"), fits=None),
)
def flaky_loser(run: RunBuilder) -> Iterator[str]:
    """The pipeline loses a row in one run of three, without any fault; this time in the batch that was struck."""
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 17), (18, 40))]
    run.calm([], [run.rows((0, 25), (26, 40))], [])
    yield "no baseline run loses a row"
    run.calm()


@adversary(
    6,
    error(
        "expected rows and pipeline do not fit: 1 rows are unexpected in",
        kinds={Kind.UNEXPECTED: 1},
        without_faults=True,
    ),
    twin=violated(Kind.UNEXPECTED, 1, blame()),
)
def header_row(run: RunBuilder) -> Iterator[str]:
    """The program writes a row of its own at its start. Nobody expected it, and no fault made it."""
    run.injection(1)
    run.tables = [[*run.rows((0, 40)), ("999", "header", "0")]]
    run.calm(*[run.tables] * 3)
    yield "no baseline run shows it"
    run.calm()


@adversary(
    6,
    error(
        "expected rows and pipeline do not fit: 1 rows are misordered in",
        kinds={Kind.MISORDERED: 1},
        without_faults=True,
    ),
    twin=violated(Kind.MISORDERED, 1, blame()),
)
def order_that_nobody_keeps(run: RunBuilder) -> Iterator[str]:
    """The order that is asked for is not the one in which the program writes, with or without faults."""
    ordered = replace(PER_RECORD, order=Order(by="place", follows="id", per=("account",)))
    placed = [(*row, str(at)) for at, row in enumerate(run.rows((0, 40)))]
    swapped = [(*placed[0][:3], "4"), *placed[1:4], (*placed[4][:3], "0"), *placed[5:]]
    run.sink(ordered, types=[[*TYPES["payments"], ("place", "bigint", "number")]])
    run.injection(1, tables=[placed[:20]])
    run.tables = [swapped]
    run.calm(*[[swapped]] * 3)
    yield "the baseline runs are in order"
    run.calm(*[[placed]] * 3)


DOUBLES = replace(
    TOTALS, expected="select account, count(*) as n, sum(cast(amount as double)) as total from ledger group by account"
)
SUMMED = [*COUNTED, ("total", "double precision", "float")]


@adversary(
    6,
    inconclusive("differ only by rounding", shown=("1 repetition",)),
    twin=violated(Kind.WRONG_AGGREGATE, 1, blame(), fits=None),
)
def an_account_that_closes_at_zero(run: RunBuilder) -> Iterator[str]:
    """What went in came out again. In the order of the pipeline the sum of doubles is not quite zero, and no part of
    zero is near it."""
    run.sink(DOUBLES, types=[SUMMED])
    for place, amount in ((0, "7.5"), (1, "0.9"), (10, "-8.4")):
        run.records[place] |= {"account": "z", "amount": amount}
    run.injection(1)
    rows = run.rows((0, 40))
    run.tables = [[(a, n, "-3.3306690738754696e-16" if a == "z" else total) for a, n, total in rows]]
    run.calm()
    yield "it is a cent"
    run.tables = [[(a, n, "0.01" if a == "z" else total) for a, n, total in rows]]


MEANS = replace(TOTALS, expected="select account, count(*) as n, avg(amount) as total from ledger group by account")
NETS = replace(
    MEANS,
    expected="select account, count(*) as n, (sum(amount) - sum(0.5))::double as total from ledger group by account",
)


def rounded(run: RunBuilder) -> None:
    """One account closes at zero, exactly in the ledger and not in the sink."""
    for place, amount in ((0, "0.1"), (1, "0.2"), (10, "-0.3")):
        run.records[place] |= {"account": "z", "amount": amount}
    run.injection(1)
    run.calm()


@adversary(6, inconclusive("differ only by rounding", shown=("1 repetition",)), twin=held("1 repetition"))
def a_mean_of_decimals(run: RunBuilder) -> Iterator[str]:
    """DuckDB's mean of decimals is a double, and what went in are none."""
    run.sink(MEANS, types=[SUMMED])
    rounded(run)
    run.tables = [[(a, n, "1.850371707708594e-17" if a == "z" else total) for a, n, total in run.rows((0, 40))]]
    yield "it is zero in the sink too"
    run.tables = []


@adversary(
    6,
    inconclusive("differ only by rounding", shown=("1 repetition",)),
    twin=violated(Kind.WRONG_AGGREGATE, 1, blame(), fits=None),
)
def a_difference_of_sums(run: RunBuilder) -> Iterator[str]:
    """Nothing tells what went into the column but its other totals."""
    run.sink(NETS, types=[SUMMED])
    rounded(run)
    for place, amount in ((0, "0.6"), (1, "0.7"), (10, "0.2")):
        run.records[place]["amount"] = amount
    rows = run.rows((0, 40))
    run.tables = [[(a, n, "1.850371707708594e-17" if a == "z" else total) for a, n, total in rows]]
    yield "it is off by a cent"
    run.tables = [[(a, n, "0.01" if a == "z" else total) for a, n, total in rows]]
