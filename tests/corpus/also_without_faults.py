"""Item 5: the snapshots show both sides of it, and so does every run without faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Expected, Guarantee, Kind, Word
from tests.corpus.case import adversary, error, held, violated
from tests.corpus.counters import COUNTED, COUNTS
from tests.corpus.run_builder import RunBuilder, blame
from tests.corpus.stalled import stall

LOST, DUPLICATED = Kind.LOST, Kind.DUPLICATED
ROWS = "after row 1"
FIRST = blame(0, point="batch-planned")


@adversary(
    5,
    violated(LOST, 10, batches=(0,), without_faults=True, fits=()),
    twin=violated(LOST, 10, FIRST, batches=(0,), as_expected=True),
)
def a_batch_that_is_always_skipped(run: RunBuilder) -> Iterator[str]:
    """The program drops what it takes for done: batch 0, with or without faults. The driver was killed before that one
    wrote."""
    run.injection(0, point="batch-planned", holds=0)
    run.tables = [run.rows((10, 40))]
    run.calm(*[[run.rows((10, 40))]] * 3)
    run.claim(verdict=Expected(word=Word.VIOLATED, kinds=(LOST,)))
    yield "without faults it arrives"
    run.calm()


@adversary(
    5,
    violated(DUPLICATED, 1, batches=(1,), without_faults=True, fits=()),
    twin=violated(DUPLICATED, 1, blame(1), batches=(1,), as_expected=True),
)
def a_record_that_is_written_again_later(run: RunBuilder) -> Iterator[str]:
    """A queue of retries writes one record of the struck batch once more, with or without faults."""
    run.injection(1)
    run.tables = [run.rows((0, 40), again=[(15, 16)])]
    run.calm(*[run.tables] * 3)
    run.claim(verdict=Expected(word=Word.VIOLATED, kinds=(DUPLICATED,)))
    yield "without faults it does not"
    run.calm()


@adversary(
    6,
    error("do not fit", kinds={Kind.CORRUPTED: 1}, without_faults=True, batches=(1,)),
    twin=violated(Kind.CORRUPTED, 1, blame(1), batches=(1,)),
)
def a_record_that_is_overwritten_later(run: RunBuilder) -> Iterator[str]:
    """A later pass sets the amount of one payment of the struck batch to zero, with or without faults."""
    run.injection(1)
    run.tables = [[(row[0], row[1], "0") if row[0] == "15" else row for row in run.rows((0, 40))]]
    run.calm(*[run.tables] * 3)
    yield "without faults it keeps its amount"
    run.calm()


@adversary(8, error("does not work without faults either"), twin=violated(Kind.STALLED, 1, blame(1)))
def a_pipeline_that_hangs_by_itself(run: RunBuilder) -> Iterator[str]:
    """It stops at the same record, with or without faults, and says how long it may go without a commit."""
    stall(run)
    run.claim(pipeline=replace(run.scenario.pipeline, interval_s=20.0))
    run.calm(*["10 of 40 records were not committed by the pipeline"] * 2)
    yield "without faults it gets done"
    run.calm()


@adversary(
    9,
    violated(LOST, 5, batches=(1,), without_faults=True, fits=()),
    twin=held("1 repetition", "2 loss", kinds={LOST: 5}, faults=None, fits=None, batches=(1,)),
)
def at_most_once_of_what_never_arrives(run: RunBuilder) -> Iterator[str]:
    """Five records of the batch that was exposed are lost, with or without faults: at-most-once allows what a fault
    does."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(0)
    run.injection(1, point="batch-planned", holds=10)
    left = [row for row in run.rows((0, 40)) if row[0] not in {"11", "13", "15", "17", "19"}]
    run.tables = [left]
    run.calm(*[[left]] * 3)
    yield "without faults they arrive"
    run.calm()


@adversary(
    9,
    violated(LOST, 10, batches=(1,), without_faults=True, fits=()),
    twin=held("1 loss", "1 repetition", kinds={LOST: 10}, faults=(blame(1, point=ROWS),), batches=(1,)),
)
def at_most_once_of_a_batch_that_is_always_skipped(run: RunBuilder) -> Iterator[str]:
    """The whole batch that was in flight is lost, with or without faults."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    there = {"0": ("insert into payments",)}
    run.injection(1, point=ROWS, holds=10, writing=there, left=there)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm(*[run.tables] * 3)
    yield "without faults it arrives"
    run.calm()


@adversary(
    9,
    held(
        "1 loss",
        "1 repetition",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(point="after row 1"),),
        fits=None,
        batches=(1,),
    ),
    twin=held("1 loss", "1 repetition"),
)
def a_total_that_had_it_and_has_not(run: RunBuilder) -> Iterator[str]:
    """At-most-once allows the loss of what never was in the sink. One total had the struck batch when the fault was
    injected, and is overwritten without it; no sum tells."""
    run.sink(COUNTS, types=[COUNTED])
    run.records = [{"id": i, "account": f"a{i % 2}", "amount": "1.00"} for i in range(40)]
    run.batch_sizes(6, 10, 14, 8)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(1, point=ROWS, tables=[[("a0", "8"), ("a1", "3")]])
    run.tables = [run.rows((0, 6), (16, 38))]
    run.calm()
    yield "both have it in the end"
    run.tables = []


@adversary(
    6,
    violated(Kind.DUPLICATED, 10, batches=(1,), without_faults=True),
    twin=violated(Kind.DUPLICATED, 10, blame(1), batches=(1,)),
)
def twice_without_faults_and_twice_after_the_fault(run: RunBuilder) -> Iterator[str]:
    """The program writes each row of batch 1 twice, with or without faults, and was killed when it had."""
    run.injection(1, tables=[run.rows((0, 20), again=[(10, 20)])])
    run.tables = [run.rows((0, 40), again=[(10, 20)])]
    run.calm(*[[run.rows((0, 40), again=[(10, 20)])]] * 3)
    yield "the batch came again: three times in all"
    run.tables = [run.rows((0, 40), again=[(10, 20), (10, 20)])]


@adversary(
    6,
    error("do not fit", kinds={Kind.WRONG_AGGREGATE: 2}, batches=(1,), without_faults=True),
    twin=violated(Kind.WRONG_AGGREGATE, 2, blame(1), batches=(1,)),
)
def a_batch_that_always_counts_twice(run: RunBuilder) -> Iterator[str]:
    """The program counts its second batch twice, with or without faults. That batch was struck; it is another one in
    the baseline runs, which set their own pace, so that their totals are others."""
    run.sink(COUNTS, types=[COUNTED])
    run.records = [{"id": i, "account": f"a{i % 2}", "amount": "1.00"} for i in range(40)]
    run.batch_sizes(6, 10, 14, 8)
    run.injection(1)
    run.tables = [run.rows((0, 38), again=[(6, 16)])]
    run.calm(*[[run.rows((0, 38), again=[(6, 18)])]] * 3)
    yield "without faults it does not"
    run.calm()
