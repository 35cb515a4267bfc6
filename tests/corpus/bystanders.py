"""Items 1, 2, 5, 8: what stood beside the struck query. Another query that starts again, another query's executor, a
heartbeat, a checkpoint that the next attempt had wiped, a single record, floating point numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Guarantee, Kind
from harness.snapshot import RESTART, Query, QueryState
from tests.corpus.case import adversary, error, held, untested, violated
from tests.corpus.counters import COUNTED, COUNTS, counting
from tests.corpus.own_offsets import by_hand
from tests.corpus.run_builder import RunBuilder, blame, query, state
from tests.corpus.stalled import stall
from tests.corpus.witnesses import AUDIT, EXECUTOR, HALF, PAYMENTS, executor, hung
from tests.folders import PER_RECORD, TOTALS

LOST, DUPLICATED = Kind.LOST, Kind.DUPLICATED
CONSOLE = ("tmp/temporary-1", "tmp/temporary-2")
"""The checkpoints that Spark gives a query without one: new in each attempt."""


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres payments: 2"), twin=held("1 repetition"))
def a_query_beside_it_has_no_checkpoint(run: RunBuilder) -> Iterator[str]:
    """Two queries, killed when both had committed all that they had planned. The one that prints to the console has no
    checkpoint, and begins with the first record again; the one that feeds the sink goes on where it was."""
    beside, made_again = CONSOLE
    queries = {name: query(name, 10, first={1: 0}) for name in (beside, "checkpoint")}
    states = tuple(state(name, planned=(1, 10), committed=(1, 10)) for name in queries)
    run.injection(0, point="batch-committed", holds=10, states=states, planned=1, committed=1)
    whole = query("checkpoint", *run.ends, first={1: 0, 2: 1})
    run.queries, run.batches = [queries[beside], whole, query(made_again, *run.ends, first={2: 0})], []
    yield "both begin with the first record again"
    last = query("checkpoint", *run.ends, first={2: 0})
    run.queries = [*queries.values(), query(made_again, *run.ends, first={2: 0}), last]


@adversary(
    2, untested("step 1 (`kill executor`) does not count for postgres payments:"), twin=held("1 loss", "1 repetition")
)
def an_executor_of_nobody_knows_which_query(run: RunBuilder) -> Iterator[str]:
    """Two queries had a batch in flight, on two executors, and one of those was killed at a moment. Its task may have
    been the other query's."""
    run.sink(replace(PER_RECORD, query="payments"))
    run.queries = [query(each, *run.ends, first={1: 0}) for each in (PAYMENTS, AUDIT)]
    busy = tuple(state(each, planned=(2, 20), committed=(1, 10)) for each in (PAYMENTS, AUDIT))
    run.injection(1, checkpoint=PAYMENTS, point="after 3.0 s", holds=15, states=busy)
    executor(run)
    run.claim(pipeline=replace(run.scenario.pipeline, executors=2))
    yield "it stood before a row of this sink"
    run.steps[0] = replace(run.steps[0], evidence=replace(run.steps[0].evidence, rows_seen=15))


def wiped(run: RunBuilder, *, point: str = "sink-committed", holds: int = 20) -> None:
    """Killed in batch 1. The program deletes its checkpoint when it starts, and had done so when the second reading was
    taken."""
    run.injection(1, point=point, holds=holds, again=None)
    gone = (QueryState(checkpoint="checkpoint"),)
    run.moments.append(replace(run.moments[0], moment=RESTART, states=gone, holds=holds, at_s=3.8))
    first, last = query("checkpoint", 10, 20, first={1: 0}).batches
    left = Query(checkpoint="checkpoint", batches=(first, replace(last, committed=False)), first={1: 0})
    run.queries, run.batches = [left, query("checkpoint", 20, 40, first={2: 0})], []


@adversary(5, violated(DUPLICATED, 20, blame(1, of="checkpoint")), twin=held("1 repetition"), guard=True)
def a_checkpoint_that_the_program_deletes_when_it_starts(run: RunBuilder) -> Iterator[str]:
    """The next attempt begins with the first record again, and all that had been committed is written twice."""
    wiped(run)
    run.tables = [run.rows((0, 40), again=[(0, 20)])]
    run.calm()
    yield "its sink takes no row twice"
    run.tables = []


@adversary(
    9,
    held(
        "1 loss",
        "1 repetition",
        kinds={Kind.LOST: 7},
        faults=(blame(point="after 15 rows", of="checkpoint"),),
        fits=None,
    ),
)
def lost_before_a_checkpoint_was_deleted(run: RunBuilder) -> None:
    """At-most-once; the rest of batch 1 was in flight. Two records of batch 0, which was committed, had never been
    there: no fault exposed them. The second reading shows a checkpoint without a batch, for the next attempt had
    begun."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    wiped(run, point=HALF, holds=15)
    early = [row for row in run.rows((0, 15)) if row[0] not in ("3", "4")]
    run.moments = [replace(moment, tables=[early]) for moment in run.moments]
    run.tables = [[*early, *run.rows((20, 40))]]
    run.calm()


@adversary(
    2, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 loss", "1 repetition")
)
def a_heartbeat_while_the_next_attempt_writes(run: RunBuilder) -> Iterator[str]:
    """Offsets kept by hand, killed between two offset ranges. By the second reading the next attempt has written five
    rows and saved nothing; of the dead one nobody is left, and a transaction beside the sink was open."""
    by_hand(run, 10, 20, 30, 40, point="failpoint idle", holds=10)
    run.moments.append(replace(run.moments[0], moment=RESTART, holds=15, at_s=3.5))
    run.found(writing={"": ("update heartbeat set at = now()",)}, left={})
    run.edits = {"1-injection": {"alive": []}}
    yield "the transaction had written into the sink"
    run.found(writing={"0": ("insert into payments",)}, left={"0": ("insert into payments",)})


@adversary(5, violated(Kind.WRONG_AGGREGATE, 1, blame(), batches=(1,)))
def one_record_of_a_total_is_there_twice(run: RunBuilder) -> None:
    """The struck batch held one record, and its total has one too many. One record may be there twice for any
    reason: a baseline run has to show that it is not without the fault."""
    counting(run, 8, 10, 12, 7)
    run.ends, run.records = [16, 17, 30, 37], run.records[:37]
    run.injection(1, holds=17)
    run.tables = [run.rows((0, 37), again=[(16, 17)])]


@adversary(5, violated(Kind.WRONG_AGGREGATE, 1, blame(point="batch-planned"), fits=None))
def all_but_one_record_of_a_batch_are_filtered_out(run: RunBuilder) -> None:
    """Nine of ten records of the struck batch do not pass `expected`, and the total lacks the tenth."""
    run.sink(
        replace(COUNTS, expected="select account, count(*) as n from ledger where id not between 11 and 19 group by 1"),
        types=[COUNTED],
    )
    for record in run.records:
        record["account"] = f"a{record['id'] % 2}"
    run.batch_sizes(10, 10, 14, 6)
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 10), (11, 40))]
    run.calm([])


@adversary(8, violated(Kind.STALLED, 1), twin=violated(Kind.STALLED, 1, EXECUTOR))
def hangs_long_after_an_injection_that_no_snapshot_tells_of(run: RunBuilder) -> Iterator[str]:
    """An executor was killed in batch 1, and the snapshot of it is not there. Its driver committed that batch and the
    next one, and hung then."""
    stall(run)
    executor(run)
    run.moments = []
    run.queries = [hung(run, committed=3, planned=4)]
    run.calm_gap_s = 5.0
    run.calm()
    yield "it committed nothing any more"
    run.queries = [hung(run, committed=1, planned=2)]


@adversary(
    6,
    error("does not work without faults either", kinds={LOST: 10}, fits=None),
    twin=violated(LOST, 10, blame(1, point="batch-planned")),
)
def two_baseline_runs_failed_and_one_did_not_get_done(run: RunBuilder) -> Iterator[str]:
    """Two baseline runs died by themselves, and one was slow: no run without a fault came to its end."""
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm("boom", "boom", [])
    run.edits = {"baseline/3/progress": {"committed": {"0": 30}}}
    yield "the third one did"
    run.edits = {}


@adversary(5, violated(Kind.WRONG_AGGREGATE, 4, blame(point="batch-planned", of="checkpoint")))
def sums_of_doubles_that_are_wrong_in_the_end(run: RunBuilder) -> None:
    """The checkpoint was lost, and the next attempt began beyond batch 1: its records are in no total. A reading does
    not show floating point numbers, and in the end the totals are wrong: nobody wrote that batch."""
    double = "select account, sum(amount)::double as total from ledger group by account"
    run.sink(
        replace(TOTALS, expected=double), types=[[("account", "text", "text"), ("total", "double precision", "float")]]
    )
    run.batch_sizes(6, 14, 12, 8)
    run.injection(1, point="batch-planned", holds=6, again=None)
    first, last = query("checkpoint", 6, 20, first={1: 0}).batches
    left = Query(checkpoint="checkpoint", batches=(first, replace(last, committed=False)), first={1: 0})
    run.queries, run.batches = [left, query("checkpoint", 32, 40, start=20, first={2: 0})], []
    run.tables = [run.rows((0, 6), (20, 40))]
    run.calm()


@adversary(
    1,
    held("1 loss", "1 repetition"),
    twin=untested("step 1 (`kill driver`) does not count for postgres payments:"),
    guard=True,
)
def begins_at_the_last_row_of_the_sink(run: RunBuilder) -> Iterator[str]:
    """At-least-once: the next attempt asks the sink how far it is, and begins there under a new checkpoint. The rest of
    the struck batch would have been lost had it begun beyond that."""
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.injection(1, point=HALF, holds=15)
    first, last = query("checkpoint", 10, 20, first={1: 0}).batches
    left = Query(checkpoint="checkpoint", batches=(first, replace(last, committed=False)), first={1: 0})
    run.queries, run.batches = [left, query("checkpoint", 20, 30, 40, start=15, first={2: 0})], []
    yield "it begins behind that batch, which is in the sink"
    run.queries = [left, query("checkpoint", 30, 40, start=20, first={2: 0})]


@adversary(
    2, untested("step 1 (`kill executor`) does not count for postgres payments:"), twin=held("1 loss", "1 repetition")
)
def an_executor_died_whose_task_had_finished(run: RunBuilder) -> Iterator[str]:
    """All rows of batch 1 were in the sink when its executor was killed, and the batch was not committed yet. The
    driver lived: Spark writes none of them again, whatever the program is."""
    run.injection(1, point=HALF, holds=20)
    executor(run)
    yield "the task was in the middle of them"
    run.found(tables=[run.rows((0, 15))])


@adversary(
    2, held("1 repetition"), twin=untested("step 1 (`kill executor`) does not count for postgres payments:"), guard=True
)
def a_driver_that_did_not_outlive_its_executor(run: RunBuilder) -> Iterator[str]:
    """All rows of batch 1 were in the sink when its executor was killed. The driver ended by itself, and the next one
    did the whole batch again."""
    run.injection(1, point=HALF, holds=20)
    executor(run)
    run.queries, run.batches = [query("checkpoint", 10, 20, 30, 40, first={1: 0, 2: 1})], []
    yield "it went on"
    run.queries = [query("checkpoint", 10, 20, 30, 40, first={1: 0})]
