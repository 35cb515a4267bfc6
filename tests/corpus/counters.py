"""Item 3: totals under a weaker guarantee. A sum is no witness: many histories come to it, and none acquits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Guarantee, Kind
from tests.corpus.case import adversary, held, inconclusive, violated
from tests.corpus.run_builder import RunBuilder, blame
from tests.folders import TOTALS

COUNTS = replace(TOTALS, expected="select account, count(*) as n from ledger group by account")
COUNTED = [("account", "text", "text"), ("n", "bigint", "number")]
WRONG = Kind.WRONG_AGGREGATE


def counting(run: RunBuilder, *contributions: int) -> None:
    """Two accounts that each batch gives the same to, so that no key tells more than the other."""
    run.sink(COUNTS, types=[COUNTED])
    for record in run.records:
        record["account"] = f"a{record['id'] % 2}"
    run.batch_sizes(*(2 * each for each in contributions))


@adversary(
    3,
    inconclusive(
        "2 findings may hide what the guarantee forbids, or be what it",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(2, attempt=2),),
        fits=None,
    ),
    twin=violated(Kind.WRONG_AGGREGATE, 2, blame(2, attempt=2), fits=None),
)
def a_lost_and_a_doubled_batch_read_as_one_more(run: RunBuilder) -> Iterator[str]:
    """Contributions 2, 3, 5, 7; one batch is lost and another doubled. "Too high by exactly batch 0" acquits a program
    that lost records."""
    counting(run, 2, 3, 5, 7)
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.injection(1, point="batch-planned", holds=4)
    run.injection(2)
    run.tables = [run.rows((0, 4), (10, 34), again=[(10, 20)])]
    run.calm()
    yield "none was doubled"
    run.tables = [run.rows((0, 4), (10, 34))]


@adversary(
    3,
    inconclusive(
        "2 findings may hide what the guarantee forbids, or be what it",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(point="batch-planned", attempt=2),),
        fits=None,
    ),
    twin=held(
        "1 repetition",
        "2 loss",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(point="batch-planned", attempt=2),),
        batches=(1,),
    ),
)
def a_doubled_and_a_lost_batch_read_as_one_less(run: RunBuilder) -> Iterator[str]:
    """The same the other way round: "too low by exactly batch 2" acquits a program that doubled records, though the
    fault struck batch 1."""
    counting(run, 2, 4, 5, 7)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(0)
    run.injection(1, point="batch-planned", holds=4)
    run.tables = [run.rows((0, 22), again=[(0, 4)])]
    run.calm()
    yield "the struck batch is missing, and nothing else is wrong"
    run.tables = [run.rows((0, 4), (12, 36))]


@adversary(
    3,
    held(
        "1 loss",
        "2 repetition",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(2, attempt=2),),
        fits=None,
    ),
    twin=violated(Kind.WRONG_AGGREGATE, 2, blame(2, attempt=2), fits=None),
)
def two_doubled_and_one_lost_read_as_one_twice_more(run: RunBuilder) -> Iterator[str]:
    """Batches 1 and 2 doubled, batch 0 lost: just what batch 1 counted three times would come to."""
    counting(run, 2, 3, 5, 7)
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.injection(1, point="batch-planned", holds=4)
    run.injection(2)
    run.tables = [run.rows((4, 34), again=[(4, 10), (10, 20)])]
    run.calm()
    yield "none was doubled"
    run.tables = [run.rows((4, 34))]


@adversary(
    3,
    held(
        "1 repetition",
        "2 loss",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(point="batch-planned", attempt=2),),
        fits=None,
        batches=(2,),
    ),
)
def another_batch_is_missing(run: RunBuilder) -> None:
    """At-most-once allows the loss of what was exposed. A total that misses more than that has lost something else."""
    counting(run, 3, 5, 6, 4)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(0)
    run.injection(1, point="batch-planned", holds=6)
    run.tables = [run.rows((0, 16), (28, 36))]
    run.calm()


@adversary(
    3,
    inconclusive(
        "2 findings may hide what the guarantee forbids, or be what it",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(attempt=2),),
        batches=(0, 1, 2, 3),
    ),
    twin=held("1 loss", "2 repetition"),
)
def a_lost_and_a_doubled_batch_come_to_the_struck_one(run: RunBuilder) -> Iterator[str]:
    """The struck batch came once; of the later ones, which no snapshot has seen, one is lost and one doubled.
    Together that is just what the struck one would have added."""
    counting(run, 2, 5, 3, 8)
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.injection(0, point="batch-planned", holds=0)
    run.injection(1)
    run.tables = [run.rows((0, 14), (20, 36), again=[(20, 36)])]
    yield "no batch was lost, and none doubled"
    run.tables = []


NET = replace(TOTALS, expected="select account, sum(amount) as total from ledger group by account")


@adversary(
    3,
    held(
        "1 loss",
        "2 repetition",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(attempt=2),),
    ),
    twin=violated(Kind.WRONG_AGGREGATE, 2, blame(attempt=2), fits=None),
)
def a_total_that_repetition_makes_smaller(run: RunBuilder) -> Iterator[str]:
    """The struck batch is counted twice, as at-least-once allows, and it only takes money off the accounts."""
    run.sink(NET, types=[[("account", "text", "text"), ("total", "numeric", "number")]])
    sizes = (3, 5, 6, 4)
    counting(run, *sizes)
    run.sink(NET, types=[[("account", "text", "text"), ("total", "numeric", "number")]])
    run.records = [{**record, "amount": "-1.00" if 6 <= record["id"] < 16 else "2.00"} for record in run.records]
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.injection(0, point="batch-planned", holds=0)
    run.injection(1)
    run.tables = [run.rows((0, 36), again=[(6, 16)])]
    run.calm()
    yield "no record takes anything off"
    run.records = [{**record, "amount": "2.00"} for record in run.records]
    run.tables = [run.rows((0, 6), (16, 36))]
