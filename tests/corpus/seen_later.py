"""Items 4, 5 and 9: what a later fault saw in the sink; a control that lost something else; Spark's word of a sink."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.checkers.cells import Row
from harness.scenario import Guarantee, Kind
from harness.snapshot import RESTART, Batch, Query, QueryState
from tests.corpus.case import adversary, held, unknown, violated, void
from tests.corpus.counters import COUNTED, COUNTS, OPEN, counting
from tests.corpus.nothing_written import AUDIT, PAYMENTS
from tests.corpus.scene import Scene, blame, query, state
from tests.folders import PER_RECORD, TOTALS

LOST, WRONG = Kind.LOST, Kind.WRONG_AGGREGATE
PLANNED = blame(1, window="offsets-written")
SECOND = blame(1, window="offsets-written", attempt=2)


@adversary(5, violated(LOST, 10, batches=(1,), fits=(blame(1, attempt=2),)), twin=violated(
    LOST, 10, SECOND, batches=(1,)
))  # fmt: skip
def there_when_the_next_fault_struck(run: Scene) -> Iterator[str]:
    """Killed before the batch wrote; the next attempt wrote all of it, and was killed as well. In the end it is not
    there: the first fault did not lose it."""
    run.strike(1, window="offsets-written", holds=10)
    run.strike(1, holds=20)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()
    yield "the next attempt had not written it either"
    run.steps[1] = replace(run.steps[1], window="offsets-written")
    run.found(2, holds=10)


@adversary(9, unknown(OPEN, kinds={WRONG: 2}, faults=None, fits=None), twin=violated(
    WRONG, 2, batches=None, fits=None
))  # fmt: skip
def totals_that_had_it_later(run: Scene) -> Iterator[str]:
    """At-most-once: the batch that was at stake in the first fault was in the totals when the second one struck."""
    counting(run, 2, 5, 4, 8)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.strike(1, window="offsets-written", holds=4)
    run.strike(2, window="after row 1", holds=22)
    run.tables = [run.rows((0, 4), (14, 38))]
    run.calm()
    yield "both batches that were at stake are missing, and one more"
    run.tables = [run.rows((0, 4), (30, 38))]


@adversary(9, unknown("none of 3 control runs got done", kinds={LOST: 10}, batches=(1,), fits=(SECOND,)), twin=held(
    "1 repetition", "2 loss", kinds={LOST: 10}, faults=(SECOND,), batches=(1,)
))  # fmt: skip
def controls_that_did_not_get_done(run: Scene) -> Iterator[str]:
    """At-most-once allows a loss that is not there without faults, and no control run got so far that it could tell."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.strike(0)
    run.strike(1, window="offsets-written", holds=10)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()
    run.edits = {f"controls/{number}/checkpoint.json": {"drained": False} for number in (1, 2, 3)}
    yield "they got done"
    run.edits = {}


@adversary(5, unknown("only 1 of 3 control runs got done", kinds={LOST: 10}, faults=(PLANNED,), batches=(1,), wants=2),
           twin=violated(LOST, 10, PLANNED, batches=(1,)))  # fmt: skip
def a_control_that_lost_another_batch(run: Scene) -> Iterator[str]:
    """The run lost the struck batch. The control lost another one, without a fault: a program that loses."""
    run.strike(1, window="offsets-written", holds=10)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm([run.rows((0, 20), (30, 40))])
    yield "the control lost none"
    run.calm([])


@adversary(
    9,
    void("at-most-once allows it", kinds={LOST: 10}, batches=(1,), fits=None, shown=("1 loss",)),
    twin=violated(LOST, 10, batches=(1,), fits=None, unhurt=True),
)
def sparks_word_of_rows_that_are_not_there(run: Scene) -> Iterator[str]:
    """At-most-once. Spark took the sink for committed, and the program still had the rows in its own hands: they were
    lost with it."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.strike(1, holds=10)
    run.moments.append(replace(run.moments[0], moment=RESTART, holds=10))
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()
    yield "they never arrive without faults either"
    run.calm(*[run.tables] * 3)


@adversary(4, void("comes to the same totals"), twin=held("1 repetition"))
def a_batch_that_was_lost_before(run: Scene) -> Iterator[str]:
    """When the fault struck, the totals were those of one batch: batch 0, of the same size, was lost, and not batch 1,
    which the next attempt counts twice. In the end they are right."""
    counting(run, 5, 5, 6, 8)
    run.claim(settle_s=5.0)
    run.strike(1, tables=[run.rows((10, 20))])
    yield "the totals were those of both"
    run.found(tables=[run.rows((0, 20))])


@adversary(2, void("nothing shows which of them feeds"), twin=held("1 loss", "1 repetition"))
def a_late_sink_of_a_query_with_other_batches(run: Scene) -> Iterator[str]:
    """The payments were committed and are shown late, as after their first batch. The audit, whose batch is larger, had
    that in hand."""
    audit = (Batch(batch=0, ranges={0: (0, 30)}, committed=True), Batch(batch=1, ranges={0: (30, 40)}, committed=True))
    run.queries = [
        Query(checkpoint=AUDIT, batches=audit, first={1: 0, 2: 0}),
        query(PAYMENTS, *run.ends, first={1: 0, 2: 2}),
    ]
    run.batches = list(audit)
    run.claim(settle_s=5.0)
    there = (
        QueryState(checkpoint=AUDIT, offsets=(0,), planned={0: 30}),
        state(PAYMENTS, planned=(2, 20), committed=(2, 20)),
    )
    run.strike(0, window="offsets-written", checkpoint=AUDIT, holds=10, again=None, states=there)
    yield "the sink is said to be the audit's"
    run.sink(replace(PER_RECORD, query="audit"))


DOUBLES = replace(TOTALS, effect="select account, sum(cast(amount as double)) as total from ledger group by account")


@adversary(9, void("at-most-once allows it", shown=("1 loss",)), twin=held("1 loss", "1 repetition"))
def nothing_but_a_sum_of_doubles(run: Scene) -> Iterator[str]:
    """Whether the batch was written shows in the last digits as well: then nobody can tell, and only what the guarantee
    allows may have been at stake."""
    run.sink(DOUBLES, types=[[("account", "text", "text"), ("total", "double precision", "float")]])
    run.batch_sizes(6, 14, 12, 8)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.strike(1, window="after row 15", holds=15)
    yield "there is a count beside the sum"
    run.sink(COUNTS, types=[COUNTED])


@adversary(5, violated(Kind.CORRUPTED, 10, batches=(1,)), twin=violated(
    Kind.CORRUPTED, 10, blame(1), batches=(1,)
))  # fmt: skip
def right_when_the_next_fault_struck(run: Scene) -> Iterator[str]:
    """The rows of batch 1 were right when the first fault struck, and when the second one did. Something wrote others
    later."""
    run.strike(1)
    run.strike(2)
    wrong: list[Row] = [(i, a, "0.5" if 10 <= int(i or 0) < 20 else m) for i, a, m in run.rows((0, 40))]
    run.tables = [wrong]
    run.calm()
    yield "the second one found them wrong"
    run.found(2, tables=[wrong[:30]])
