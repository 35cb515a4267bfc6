"""Items 4, 5 and 9: what a later fault saw in the sink; a baseline run that lost something else; Spark's word of a
sink."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.checkers.cells import Row
from harness.scenario import Expected, Guarantee, Kind, Word
from harness.snapshot import RESTART, Batch, Query, QueryState
from tests.corpus.case import adversary, held, inconclusive, untested, violated
from tests.corpus.counters import COUNTED, COUNTS, counting
from tests.corpus.nothing_written import AUDIT, PAYMENTS
from tests.corpus.run_builder import RunBuilder, blame, query, state
from tests.folders import PER_RECORD, TOTALS, at_point

LOST = Kind.LOST
PLANNED = blame(1, point="batch-planned")
SECOND = blame(1, point="batch-planned", attempt=2)


@adversary(5, violated(LOST, 10, blame(1, attempt=2), batches=(1,)), twin=violated(LOST, 10, SECOND, batches=(1,)))
def there_when_the_next_fault_struck(run: RunBuilder) -> Iterator[str]:
    """Killed before the batch wrote; the next attempt wrote all of it, and was killed as well. In the end it is not
    there: the first fault did not lose it."""
    run.injection(1, point="batch-planned", holds=10)
    run.injection(1, holds=20)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()
    yield "the next attempt had not written it either"
    run.steps[1] = at_point(run.steps[1], "batch-planned")
    run.found(2, holds=10)


@adversary(
    9,
    held(
        "1 loss",
        "2 repetition",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(point="batch-planned"),),
        fits=None,
    ),
    twin=held("1 loss", "2 repetition", kinds={Kind.WRONG_AGGREGATE: 2}, fits=None),
)
def totals_that_had_it_later(run: RunBuilder) -> Iterator[str]:
    """At-most-once: the batch that was exposed in the first fault was in the totals when the second one struck."""
    counting(run, 2, 5, 4, 8)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(1, point="batch-planned", holds=4)
    run.injection(2, point="after row 1", holds=22)
    run.tables = [run.rows((0, 4), (14, 38))]
    run.calm()
    yield "both batches that were exposed are missing, and one more"
    run.tables = [run.rows((0, 4), (30, 38))]


@adversary(
    9,
    inconclusive(
        "10 findings may be there without faults too: none of 3 baseline",
        kinds={Kind.LOST: 10},
        fits=(blame(point="batch-planned", attempt=2),),
        batches=(1,),
    ),
    twin=held("1 repetition", "2 loss", kinds={LOST: 10}, faults=(SECOND,), batches=(1,)),
)
def baseline_runs_that_did_not_get_done(run: RunBuilder) -> Iterator[str]:
    """At-most-once allows a loss that is not there without faults, and no baseline run got so far as to tell."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(0)
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()
    run.edits = {f"baseline/{number}/progress": {"caught_up": False} for number in (1, 2, 3)}
    yield "they got done"
    run.edits = {}


@adversary(
    5,
    violated(
        Kind.LOST,
        10,
        said="also without faults: 10 findings, or others of their kind, show",
        batches=(1,),
        without_faults=True,
        baseline_runs_needed=2,
    ),
    twin=violated(LOST, 10, PLANNED, batches=(1,)),
)
def a_baseline_run_that_lost_another_batch(run: RunBuilder) -> Iterator[str]:
    """The run lost the struck batch. The baseline run lost another one, without a fault: a program that loses."""
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm([run.rows((0, 20), (30, 40))])
    yield "the baseline run lost none"
    run.calm([])


@adversary(
    9,
    held(
        "1 repetition",
        kinds={Kind.LOST: 10},
        faults=(blame(),),
        fits=None,
        batches=(1,),
    ),
    twin=violated(LOST, 10, batches=(1,), fits=None, without_faults=True),
)
def sparks_word_of_rows_that_are_not_there(run: RunBuilder) -> Iterator[str]:
    """At-most-once. Spark took the sink for committed, and the program still had the rows in its own hands: they were
    lost with it."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(1, holds=10)
    run.moments.append(replace(run.moments[0], moment=RESTART, holds=10))
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()
    yield "they never arrive without faults either"
    run.calm(*[run.tables] * 3)


@adversary(
    2, untested("step 1 (`kill driver`) does not count for postgres payments: 2"), twin=held("1 loss", "1 repetition")
)
def a_late_sink_of_a_query_with_other_batches(run: RunBuilder) -> Iterator[str]:
    """The payments were committed and are shown late, as after their first batch. The audit, whose batch is larger, had
    that in flight."""
    audit = (Batch(batch=0, ranges={0: (0, 30)}, committed=True), Batch(batch=1, ranges={0: (30, 40)}, committed=True))
    run.queries = [
        Query(checkpoint=AUDIT, batches=audit, first={1: 0, 2: 0}),
        query(PAYMENTS, *run.ends, first={1: 0, 2: 2}),
    ]
    run.batches = list(audit)
    run.claim(quiet_period_s=5.0)
    there = (
        QueryState(checkpoint=AUDIT, offsets=(0,), planned={0: 30}),
        state(PAYMENTS, planned=(2, 20), committed=(2, 20)),
    )
    run.injection(0, point="batch-planned", checkpoint=AUDIT, holds=10, again=None, states=there)
    yield "the sink is said to be the audit's"
    run.sink(replace(PER_RECORD, query="audit"))


DOUBLES = replace(TOTALS, expected="select account, sum(cast(amount as double)) as total from ledger group by account")


@adversary(
    9, untested("step 1 (`kill driver`) does not count for postgres totals:"), twin=held("1 loss", "1 repetition")
)
def nothing_but_a_sum_of_doubles(run: RunBuilder) -> Iterator[str]:
    """Whether the batch was written shows in the last digits as well: then nobody can tell, and only what the guarantee
    allows may have been exposed."""
    run.sink(DOUBLES, types=[[("account", "text", "text"), ("total", "double precision", "float")]])
    run.batch_sizes(6, 14, 12, 8)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(1, point="after row 15", holds=15)
    yield "there is a count beside the sum"
    run.sink(COUNTS, types=[COUNTED])


@adversary(
    5,
    violated(Kind.CORRUPTED, 10, blame(2, attempt=2), batches=(1,)),
    twin=violated(Kind.CORRUPTED, 10, blame(1), batches=(1,)),
)
def right_when_the_next_fault_struck(run: RunBuilder) -> Iterator[str]:
    """The rows of batch 1 were right when the first fault struck, and when the second one did. Something wrote others
    later."""
    run.injection(1)
    run.injection(2)
    wrong: list[Row] = [(i, a, "0.5" if 10 <= int(i or 0) < 20 else m) for i, a, m in run.rows((0, 40))]
    run.tables = [wrong]
    run.calm()
    yield "the second one found them wrong"
    run.found(2, tables=[wrong[:30]])


def lettered(run: RunBuilder, *batches: str) -> None:
    """Counts by account, an account a letter."""
    run.sink(COUNTS, types=[COUNTED])
    run.records = [{"id": i, "account": name, "amount": "9.99"} for i, name in enumerate("".join(batches))]
    run.batch_sizes(*map(len, batches))


@adversary(
    5,
    violated(
        Kind.WRONG_AGGREGATE,
        2,
        fits=(
            blame(2, point="batch-planned", attempt=2),
            blame(),
        ),
        batches=(1,),
    ),
    twin=violated(Kind.WRONG_AGGREGATE, 2, blame(2, attempt=2), batches=(1,)),
)
def as_much_in_the_next_batch(run: RunBuilder) -> Iterator[str]:
    """Batch 1 had come again when the second fault struck. The batch in flight gives the same accounts as much, and
    was not there: the totals of that moment look like those of an honest run with it."""
    lettered(run, "abcd", "ab", "abccd", "aabcd")
    run.injection(1)
    run.injection(2, point="batch-planned", tables=[run.rows((0, 6), again=[(4, 6)])])
    run.tables = [run.rows((0, 16), again=[(4, 6)])]
    run.calm()
    yield "it had come once, and the batch in flight was there"
    run.found(2, tables=[run.rows((0, 11))])
    run.steps[1] = at_point(run.steps[1], "sink-committed")


@adversary(
    5,
    violated(
        Kind.WRONG_AGGREGATE,
        4,
        blame(),
        blame(2, attempt=2),
        fits=(
            blame(3, point="batch-planned", attempt=3),
            blame(2, attempt=2),
        ),
        batches=(1, 2),
    ),
    twin=violated(
        Kind.WRONG_AGGREGATE,
        2,
        blame(2, attempt=2),
        fits=(
            blame(3, point="batch-planned", attempt=3),
            blame(2, attempt=2),
        ),
        batches=(2,),
    ),
    guard=True,
)
def two_injections_with_a_part_each(run: RunBuilder) -> Iterator[str]:
    """Batches 1 and 2 came again, each of which gives something to two of the accounts that are wrong."""
    lettered(run, "abcd", "ccdd", "abb", "acd")
    run.injection(1)
    run.injection(2, tables=[run.rows((0, 11), again=[(4, 8)])])
    run.injection(3, point="batch-planned", tables=[run.rows((0, 11), again=[(4, 8), (8, 11)])])
    run.tables = [run.rows((0, 14), again=[(4, 8), (8, 11)])]
    run.calm()
    yield "only batch 2 did"
    run.found(2, tables=[run.rows((0, 11))])
    run.found(3, tables=[run.rows((0, 11), again=[(8, 11)])])
    run.tables = [run.rows((0, 14), again=[(8, 11)])]


IDLE = blame(None, point="after 2.0 s", attempt=2)


@adversary(
    5,
    violated(
        Kind.DUPLICATED,
        10,
        fits=(blame(None, point="after 2.0 s", attempt=2), blame()),
        batches=(1,),
    ),
    twin=violated(Kind.DUPLICATED, 10, IDLE, batches=(1,)),
)
def an_attempt_that_had_done_nothing(run: RunBuilder) -> Iterator[str]:
    """Killed when batch 1 was in the sink; the second attempt was killed while it started. The third one wrote the
    batch again: for either fault."""
    run.injection(1, again=None)
    run.injection(None, point="after 2.0 s", planned=2, committed=1, again=1)
    run.tables = [run.rows((0, 40), again=[(10, 20)])]
    yield "the second one had written it, and no row was there twice"
    run.found(1, again=1)


@adversary(
    7,
    violated(Kind.DUPLICATED, 1, blame(attempt=2), as_expected=True, batches=(3,)),
)
def killed_before_any_query(run: RunBuilder) -> None:
    """Killed while the program started. Later a row of a batch that no fault struck came twice."""
    run.claim(verdict=Expected(word=Word.VIOLATED, kinds=(Kind.DUPLICATED,)))
    run.injection(None, point="after 1.0 s", states=(), tables=[[]], again=None)
    run.injection(1, again=1)
    run.tables = [run.rows((0, 40), again=[(30, 31)])]
    run.calm()


ROWS = "after row 1"


@adversary(7, violated(Kind.DUPLICATED, 1, blame(point="after row 1"), as_expected=True, batches=(1,)))
def a_row_of_the_batch_in_flight(run: RunBuilder) -> None:
    """Killed in the middle of a batch that had left nothing in the sink: all that had been written was rolled back, and
    nobody was left to write. A row of the batch came twice, and so it was expected."""
    run.claim(verdict=Expected(word=Word.VIOLATED, kinds=(Kind.DUPLICATED,)))
    run.injection(1, point=ROWS, holds=10, writing={"0": ("insert into payments",)}, left={})
    run.moments.append(replace(run.moments[0], moment=RESTART, writing={}))
    there = {"1-injection": ["executor 0"], "1-restart": ["driver 2"]}
    run.edits = {f"{moment}": {"alive": alive} for moment, alive in there.items()}
    run.tables = [run.rows((0, 40), again=[(12, 13)])]
    run.calm()
