"""Items 2, 5, 6, 8, 9: what is no witness. A baseline run that nobody could read, the progress of another query, a
snapshot of another moment, rows that contradict what the saved offsets are taken to say, an injection that was
survived."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.faults import fault
from harness.scenario import Evidence, Guarantee, Kind
from harness.snapshot import Query
from tests.corpus.case import adversary, error, held, inconclusive, untested, violated
from tests.corpus.own_offsets import by_hand
from tests.corpus.run_builder import RunBuilder, blame, query, state
from tests.corpus.stalled import stall
from tests.folders import PER_RECORD, STEP

LOST, DUPLICATED, CORRUPTED = Kind.LOST, Kind.DUPLICATED, Kind.CORRUPTED
PAYMENTS, AUDIT = "checkpoints/payments", "checkpoints/audit"
EXECUTOR = "kill executor at sink-committed of batch 1, attempt 1"
HALF, LATER = "after 15 rows", "after 25 rows"
KILLED = replace(STEP, do=fault("kill executor"))


def unread(run: RunBuilder) -> None:
    """No baseline run's sink could be read."""
    words = {"unreadable": "relation payments does not exist"}
    run.edits = {f"baseline/{number}/sink/0.json": words for number in (1, 2, 3)}


def executor(run: RunBuilder) -> None:
    """The only fault killed an executor: its driver made no progress from then on until all had been read."""
    step = run.steps[0]
    evidence = Evidence(
        signalled={"5000": "SIGKILL"},
        checkpoint_before=step.evidence.checkpoint_after,
        checkpoint_after=step.evidence.checkpoint_after,
        in_flight="records",
    )
    run.steps[0] = replace(step, name=KILLED.name, evidence=evidence)
    run.found(again=None)
    run.claim(schedule=(KILLED,))


@adversary(
    9,
    inconclusive("got done", kinds={LOST: 1}, batches=(1,), fits=None),
    twin=violated(LOST, 1, batches=(1,), without_faults=True),
)
def baseline_runs_that_nobody_could_read(run: RunBuilder) -> Iterator[str]:
    """Under at-most-once a record of the struck batch is missing. Three baseline runs came to their end, and the
    table was gone when they were to be read."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    left_out = run.rows((0, 15), (16, 40))
    run.injection(1, point=HALF, tables=[left_out[:19]])
    run.tables = [left_out]
    run.calm([left_out], [left_out], [left_out])
    unread(run)
    yield "it was there, and the record was missing in each"
    run.edits = {}


@adversary(
    6,
    inconclusive("got done", kinds={CORRUPTED: 39}, fits=None),
    twin=error(
        "expected rows and pipeline do not fit: 39 rows are corrupted in",
        kinds={Kind.CORRUPTED: 39},
        without_faults=True,
    ),
)
def a_wrong_effect_and_baseline_runs_that_nobody_could_read(run: RunBuilder) -> Iterator[str]:
    """`expected` is wrong about every amount. What no baseline run shows is not the fault's, if none shows anything."""
    run.injection(1)
    wrong = [(*row[:2], "0") for row in run.rows((0, 40))]
    run.found(tables=[wrong[:20]])
    run.tables = [wrong]
    run.calm([wrong], [wrong], [wrong])
    unread(run)
    yield "they could be read"
    run.edits = {}


@adversary(
    6,
    inconclusive("got done", kinds={LOST: 1}, batches=(1,), fits=None),
    twin=violated(LOST, 1, batches=(1,), without_faults=True),
)
def baseline_runs_that_did_not_reach_the_end_of_the_topic(run: RunBuilder) -> Iterator[str]:
    """They call themselves caught up, and their last batch is not committed: what is not there may still come."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    left_out = run.rows((0, 15), (16, 40))
    run.injection(1, point=HALF, tables=[left_out[:19]])
    run.tables = [left_out]
    run.calm([left_out], [left_out], [left_out])
    run.edits = {f"baseline/{number}/progress": {"committed": {"0": 30}} for number in (1, 2, 3)}
    yield "they had committed all of it"
    run.edits = {}


@adversary(
    9,
    held(
        "1 loss",
        "1 repetition",
        kinds={Kind.LOST: 10},
        faults=("kill executor at after 25 rows of batch 2, attempt 1",),
        fits=None,
        batches=(1,),
    ),
)
def lost_before_an_executor_died(run: RunBuilder) -> None:
    """At-most-once; an executor was killed in the middle of batch 2. Batch 1 was committed by then, and nothing of it
    was in the sink: it was not exposed, though the driver lived."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(2, point=LATER, tables=[run.rows((0, 10), (20, 25))])
    executor(run)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()


@adversary(2, untested("only an executor at work for checkpoints/audit"), twin=held("1 loss"))
def an_executor_of_another_query(run: RunBuilder) -> Iterator[str]:
    """Two queries had a batch in flight, on two executors. The one that died was at work for the audit; the tasks of
    the payments, which feed the sink, may all have been on the other one."""
    run.sink(replace(PER_RECORD, query="payments"))
    run.queries = [query(each, *run.ends, first={1: 0}) for each in (PAYMENTS, AUDIT)]
    busy = tuple(state(each, planned=(2, 20), committed=(1, 10)) for each in (PAYMENTS, AUDIT))
    run.injection(1, checkpoint=AUDIT, point=HALF, holds=10, states=busy)
    executor(run)
    run.steps[0] = replace(run.steps[0], evidence=replace(run.steps[0].evidence, rows_seen=15))
    run.claim(pipeline=replace(run.scenario.pipeline, executors=2))
    yield "there was one executor for both"
    run.claim(pipeline=replace(run.scenario.pipeline, executors=1))


@adversary(2, untested("was taken after the injection: batch 2"), twin=held("1 loss", "1 repetition"))
def a_snapshot_of_the_next_batch(run: RunBuilder) -> Iterator[str]:
    """An executor was killed in batch 1, of which nothing passes `expected`. The snapshot has batch 2 half written, and
    by the evidence that was not planned when the fault was done."""
    run.sink(replace(PER_RECORD, expected="select id, account, amount from ledger where id < 10 or id >= 20"))
    run.injection(1, point=HALF, planned=3, committed=2, holds=25)
    executor(run)
    logs = {"offsets": (0, 1), "commits": (0,)}
    run.steps[0] = replace(run.steps[0], evidence=replace(run.steps[0].evidence, checkpoint_after=logs))
    yield "it was planned"
    logs = {"offsets": (0, 1, 2), "commits": (0, 1)}
    run.steps[0] = replace(run.steps[0], batch=2, evidence=replace(run.steps[0].evidence, checkpoint_after=logs))


def two(run: RunBuilder) -> None:
    """Two queries. The one that feeds the sink has nothing more to do when the other one is struck."""
    run.sink(replace(PER_RECORD, query="payments"))
    run.queries = [query(PAYMENTS, *run.ends, first={1: 0}), query(AUDIT, 10, 20, first={1: 0})]
    run.batches = []
    idle = state(PAYMENTS, planned=(4, 40), committed=(4, 40))
    states = (idle, state(AUDIT, planned=(2, 20), committed=(1, 10)))
    run.injection(2, point="after 3.0 s", checkpoint=AUDIT, again=None, holds=40, states=states)


@adversary(2, untested("every planned batch was committed"), twin=held("1 repetition"))
def another_query_begins_anew(run: RunBuilder) -> Iterator[str]:
    """The checkpoint of another query was lost, and that one begins at the first record again."""
    two(run)
    assert run.queries is not None
    run.queries.append(query(AUDIT, 40, first={2: 0}))
    yield "it was that of the query which feeds the sink"
    run.queries[-1] = query(PAYMENTS, 40, first={2: 0})


@adversary(2, untested("every planned batch was committed"), twin=held("1 loss", "1 repetition"))
def a_new_query_in_the_next_attempt(run: RunBuilder) -> Iterator[str]:
    """One query in each attempt, under other names, and the first one had no more to do: not known whether the
    second one feeds this sink."""
    run.queries = [query(PAYMENTS, *run.ends, first={1: 0}), query(AUDIT, 40, first={2: 0})]
    run.batches = []
    idle = state(PAYMENTS, planned=(4, 40), committed=(4, 40))
    run.injection(None, point="after 3.0 s", checkpoint=PAYMENTS, again=None, holds=40, states=(idle,))
    yield "the first one was left behind with a batch that it had planned"
    run.queries[0] = query(PAYMENTS, 10, 20, 30, first={1: 0})
    run.found(states=(state(PAYMENTS, planned=(4, 40), committed=(3, 30)),), holds=35)


@adversary(2, untested("name it in the sink (`query`)"), twin=held("1 loss"))
def a_sink_behind_a_query_that_is_ahead(run: RunBuilder) -> Iterator[str]:
    """Two queries, and the sink shows what the struck one had committed. It may belong to the other one, which is a
    batch ahead, and be late."""
    run.queries = [query(PAYMENTS, *run.ends, first={1: 0, 2: 2}), query(AUDIT, *run.ends, first={1: 0, 2: 1})]
    run.batches = []
    ahead = state(PAYMENTS, planned=(2, 20), committed=(2, 20))
    states = (ahead, state(AUDIT, planned=(2, 20), committed=(1, 10)))
    run.injection(1, point="batch-planned", checkpoint=AUDIT, again=None, holds=10, states=states)
    yield "the sink names its query"
    run.sink(replace(PER_RECORD, query="audit"))


@adversary(5, violated(Kind.LOST, 10, blame(None, point="after 25 rows"), fits=None))
def a_range_lost_before_the_one_in_flight(run: RunBuilder) -> None:
    """Offsets kept by hand. The offset range that they call done is not in the sink, and half of the next one is: this
    program writes before it saves, and had lost that offset range before the fault."""
    by_hand(run, 20, 30, 40, point=LATER, holds=20)
    run.found(tables=[run.rows((0, 10), (20, 25))])
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()


@adversary(
    9,
    held("1 loss", "1 repetition", kinds={Kind.LOST: 10}, faults=(blame(None, point="after 25 rows"),), fits=None),
    twin=untested("at-most-once allows it", shown=("1 loss",), kinds={LOST: 10}, faults=None, fits=None),
)
def a_range_lost_before_under_at_most_once(run: RunBuilder) -> Iterator[str]:
    """The same, and the loss of what a fault exposed is allowed."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    by_hand(run, 20, 30, 40, point=LATER, holds=20)
    writing = {"0": ("insert into payments",)}
    run.found(tables=[run.rows((0, 10), (20, 25))], writing=writing)
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()
    yield "nothing of the next one is there: the program saves before it writes"
    run.found(tables=[run.rows((0, 10))])


GAVE_UP = {
    "caught_up": False,
    "stalled": {"kind": "gave up", "idle_s": 1.0, "words": "the driver died 6 times in vain"},
}


@adversary(
    5,
    violated(Kind.STALLED, 1, fits=(blame(None, point="after 60.0 s", attempt=2), blame(1))),
    twin=violated(Kind.STALLED, 1, blame(None, point="after 60.0 s", attempt=2)),
)
def a_second_injection_that_met_a_pipeline_in_vain(run: RunBuilder) -> Iterator[str]:
    """Killed in batch 1, and once more an attempt later, which had got nothing done: it is not known which of the two
    the pipeline did not survive."""
    stall(run)
    run.injection(None, point="after 60.0 s", planned=2, committed=1, again=None)
    run.outcome = GAVE_UP
    run.calm()
    run.queries = [worked(run, 1)]
    yield "that attempt had committed batch 1"
    run.queries = [worked(run, 2)]


@adversary(5, violated(Kind.STALLED, 1), twin=violated(Kind.STALLED, 1, blame(1)))
def a_pipeline_that_went_on_and_stopped_later(run: RunBuilder) -> Iterator[str]:
    """The next attempt committed the struck batch, and nothing after it: it did survive the fault."""
    stall(run)
    run.outcome = GAVE_UP
    run.calm()
    run.queries = [worked(run, 2)]
    yield "it never committed that batch"
    run.queries = [worked(run, 1)]


@adversary(5, violated(Kind.STALLED, 1), twin=violated(Kind.STALLED, 1, EXECUTOR))
def hangs_two_batches_after_an_executor_died(run: RunBuilder) -> Iterator[str]:
    """An executor was killed in batch 1. Its driver committed that batch and the next one, and hung then: it did
    survive the fault."""
    stall(run)
    executor(run)
    run.found(planned=2, committed=1)
    run.queries = [hung(run, committed=3, planned=4)]
    run.calm_gap_s = 5.0
    run.calm()
    yield "it committed nothing any more"
    run.queries = [hung(run, committed=1, planned=2)]


@adversary(
    8,
    inconclusive("only 1 of 3 baseline runs were made", baseline_runs_needed=2),
    twin=violated(Kind.STALLED, 1, blame(1)),
)
def one_baseline_run_is_no_proof_that_it_never_hangs(run: RunBuilder) -> Iterator[str]:
    """It got done once without faults. A program that hangs by itself in one run of three does that as well."""
    stall(run)
    run.calm_gap_s = 5.0
    run.calm([])
    yield "it got done three times"
    run.calm()


def hung(run: RunBuilder, *, committed: int, planned: int) -> Query:
    """A query whose only attempt planned so many batches, and committed so many."""
    whole = query("checkpoint", *run.ends, first={1: 0})
    batches = [replace(batch, attempts=(1,), committed=batch.batch < committed) for batch in whole.batches[:planned]]
    return replace(whole, batches=tuple(batches))


def worked(run: RunBuilder, attempt: int) -> Query:
    """A query whose second batch was committed by `attempt`; by none if that is 1."""
    whole = query("checkpoint", *run.ends, first={1: 0, 2: 1})
    first, second = whole.batches[:2]
    done = replace(second, committed=attempt > 1, attempts=tuple(range(1, attempt + 1)))
    return replace(whole, batches=(replace(first, attempts=(1,)), done))
