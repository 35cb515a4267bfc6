"""Items 2, 5 and 9: what a reading of the sink leaves out, what comes again in part, and what no baseline run
confirms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Guarantee, Kind
from tests.corpus.case import adversary, error, held, inconclusive, untested, violated
from tests.corpus.counters import COUNTED, COUNTS, counting
from tests.corpus.run_builder import RunBuilder, blame, query
from tests.folders import PER_RECORD, TOTALS

LOST, DUPLICATED = Kind.LOST, Kind.DUPLICATED
SHARED = replace(PER_RECORD, key=("account",))
"""Several rows have one key."""
PLANNED = blame(1, point="batch-planned", attempt=2)
LABELLED = replace(
    TOTALS, expected="select account, min(account) as label, sum(amount::double) as total from ledger group by account"
)
LABELS = [("account", "text", "text"), ("label", "text", "text"), ("total", "double precision", "float")]


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres totals:"), twin=held("1 loss"))
def a_sum_of_doubles_beside_a_label(run: RunBuilder) -> Iterator[str]:
    """The struck batch was whole in the sink, and only its sum of doubles shows that: the label is what it was."""
    run.batch_sizes(6, 14, 12, 8)
    run.sink(LABELLED, types=[LABELS])
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.injection(1, point="batch-planned", holds=6)
    yield "there is a count in its place, and it shows that nothing was written"
    run.sink(COUNTS, types=[COUNTED])


def struck_twice(run: RunBuilder) -> None:
    """At-most-once: killed when batch 0 was in the sink, and before batch 1 wrote. Batch 1 never comes."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(0)
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()


@adversary(5, violated(Kind.WRONG_AGGREGATE, 1, blame(point="batch-planned"), fits=None))
def one_record_of_a_total_is_missing(run: RunBuilder) -> None:
    """The struck batch held one record, and it never comes. One record may be missing for any reason, as one row
    may: a baseline run without it is not enough."""
    counting(run, 8, 10, 12, 7)
    run.ends, run.records = [16, 17, 30, 37], run.records[:37]
    run.injection(1, point="batch-planned", holds=16)
    run.tables = [run.rows((0, 16), (17, 37))]
    run.calm([])


@adversary(
    8,
    violated(
        Kind.LOST,
        10,
        blame(point="batch-planned"),
        said="baseline run 2 did not work: saw nothing within 60 s",
        fits=None,
    ),
    twin=error(
        "the pipeline does not work without faults either: saw nothing",
        kinds={Kind.LOST: 10},
        fits=None,
        baseline_runs_needed=3,
    ),
    guard=True,
)
def a_baseline_run_that_failed_beside_one_that_did_not(run: RunBuilder) -> Iterator[str]:
    """The struck batch is lost, and a baseline run is without that. Another one did not come up."""
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm([], "saw nothing within 60 s")
    yield "neither did the first one"
    run.calm("saw nothing within 60 s", "saw nothing within 60 s")


@adversary(
    10,
    inconclusive("not caught up", kinds={}, fits=None),
    twin=violated(DUPLICATED, 10, blame(1), fits=None, batches=None),
)
def doubled_while_the_batch_is_in_flight(run: RunBuilder) -> Iterator[str]:
    """The time was up while the struck batch was being done again: its new rows were in, and the old ones not yet
    deleted."""
    run.injection(1)
    run.progress = 10
    run.outcome = {
        "caught_up": False,
        "reasons": ["not caught up: 30 of 40 records were not committed by the pipeline"],
    }
    run.tables = [run.rows((0, 20), again=[(10, 20)])]
    whole = query("checkpoint", *run.ends, first={1: 0, 2: 1})
    run.queries = [replace(whole, batches=tuple(replace(b, committed=b.batch < 1) for b in whole.batches[:2]))]
    yield "it had been committed"
    run.progress = 20
    run.queries = [replace(whole, batches=tuple(replace(b, committed=b.batch < 2) for b in whole.batches[:3]))]


@adversary(5, violated(Kind.DUPLICATED, 4, blame(), fits=None))
def some_rows_of_each_key_come_again(run: RunBuilder) -> None:
    """Of ten rows of four accounts that the struck batch had in the sink, four came again, one of each account. No
    restart repeats those alone."""
    run.sink(SHARED)
    run.injection(1)
    rows = run.rows((0, 40))
    run.tables = [rows + [row for row in rows if row[0] in {"12", "13", "14", "15"}]]


@adversary(
    9,
    violated(
        Kind.LOST,
        10,
        said="also without faults: 10 findings, or others of their kind, show",
        batches=(1,),
        without_faults=True,
    ),
    twin=held("1 repetition", "2 loss", kinds={LOST: 10}, batches=(1,), faults=(PLANNED,)),
)
def each_baseline_run_lost_other_rows(run: RunBuilder) -> Iterator[str]:
    """The struck batch is lost. Every baseline run lost the last two rows, without a fault: a program that loses."""
    struck_twice(run)
    run.calm(*[[run.rows((0, 38))]] * 3)
    yield "no baseline run lost any"
    run.calm()


ONCE = replace(
    PER_RECORD,
    expected="select account, count(*) as n from ledger group by account having count(*) = 1",
    key=("account",),
    target="open",
)


@adversary(2, held("1 loss"))
def a_batch_that_takes_rows_away(run: RunBuilder) -> None:
    """The struck batch closes ten of the sink's rows and adds none. It had not written: the ten are there."""
    run.records = [
        {**each, "account": f"k{each['id'] % 10 if each['id'] < 20 else each['id']}"} for each in run.records
    ]
    run.sink(ONCE, types=[[("account", "text", "text"), ("n", "bigint", "number")]])
    run.injection(1, point="batch-planned", holds=10)


@adversary(
    9,
    inconclusive(
        "10 findings may hide what the guarantee forbids, or be what it", kinds={Kind.LOST: 10}, fits=None, batches=(2,)
    ),
    twin=held(
        "1 repetition",
        "2 repetition",
        kinds={Kind.LOST: 10},
        faults=(blame(2, point="batch-planned", attempt=2),),
        fits=None,
        batches=(2,),
    ),
)
def an_injection_of_which_nothing_is_known(run: RunBuilder) -> Iterator[str]:
    """At-most-once: the sink could not be read when batch 2 was struck, and that batch is lost. Nobody knows whether it
    was exposed."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(0)
    run.injection(2, point="batch-planned", holds=20)
    run.tables = [run.rows((0, 20), (30, 40))]
    run.calm()
    run.unread = {"2-injection/0": "the server was gone"}
    yield "it could be read, and had all of the batch"
    run.unread = {}
    run.found(2, holds=30)
