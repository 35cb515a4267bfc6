"""Item 1: the fault struck a batch without records, or nothing at all. Whatever the program does, the sink is
right."""

from __future__ import annotations

from collections.abc import Iterator

from harness.snapshot import RESTART, QueryState
from tests.corpus.case import adversary, held, untested
from tests.corpus.run_builder import CHECKPOINT, Moment, RunBuilder


@adversary(1, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 repetition"))
def first_batch_is_empty(run: RunBuilder) -> Iterator[str]:
    """The producer starts when the query has begun, so batch 0 is empty. A program that appends and is killed between
    its sink and the commit of that batch repeats nothing."""
    run.batch_sizes(0, 10, 10, 10)
    run.injection(0)
    yield "batch 0 held ten records"
    run.batch_sizes(10, 10, 10)


@adversary(1, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 repetition"))
def predecessor_was_purged(run: RunBuilder) -> Iterator[str]:
    """A batch that only moves a watermark, struck when `minBatchesToRetain` had purged the one before it: nothing is
    left beside it to see by that it is empty."""
    run.batch_sizes(10, 10, 10, 0, 10)
    purged = QueryState(checkpoint=CHECKPOINT, offsets=(3,), commits=(2,), planned={0: 30}, committed={0: 30})
    run.injection(3, states=(purged,))
    yield "batch 3 held ten records"
    run.batch_sizes(10, 10, 10, 10)
    run.found(
        states=(QueryState(checkpoint=CHECKPOINT, offsets=(3,), commits=(2,), planned={0: 40}, committed={0: 30}),)
    )


@adversary(1, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 loss"))
def after_the_first_record(run: RunBuilder) -> Iterator[str]:
    """`{records: 1}`: a record is acknowledged and not committed, a batch is planned and not committed. One is
    not in the other."""
    run.batch_sizes(0, 1, 19, 20)
    run.injection(None, point="after 1 records sent", planned=1, committed=0)
    yield "the batch in flight was the next one, with that record"
    run.found(planned=2, committed=1, holds=0)


@adversary(1, untested("every planned batch was committed: nothing was in flight"), twin=held("1 loss"))
def after_a_while(run: RunBuilder) -> Iterator[str]:
    """`{elapsed: 3s}`: the pipeline slept between two triggers, with records waiting for it that it had not planned."""
    run.injection(None, point="after 3.0 s", planned=2, committed=2, again=2)
    yield "it had planned the next batch"
    run.found(planned=3, holds=20)


@adversary(1, untested("every planned batch was committed: nothing was in flight"), twin=held("1 repetition"))
def between_two_batches(run: RunBuilder) -> Iterator[str]:
    """Killed right after `commits/1`: the next attempt goes on with batch 2, as it would have without the fault."""
    run.injection(None, point="batch-committed", planned=2, committed=2, again=2)
    yield "the checkpoint was lost, and the next attempt began at batch 0"
    run.found(again=0)


@adversary(1, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("2 repetition"))
def every_step_in_an_empty_batch(run: RunBuilder) -> Iterator[str]:
    """Two faults, two injections with evidence; 2/2 says nothing where both batches are empty."""
    run.batch_sizes(0, 10, 0, 10, 20)
    run.injection(0)
    run.injection(2)
    yield "the second of them held ten records"
    run.batch_sizes(0, 10, 10, 20)


@adversary(1, untested("every planned batch was committed: nothing was in flight"), twin=held("1 loss"))
def idle_before_a_sink_that_is_late(run: RunBuilder) -> Iterator[str]:
    """Killed between two batches. The sink shows its rows late, and has not got those of the last one yet: Spark's
    commit log has them."""
    run.claim(quiet_period_s=5.0)
    run.injection(None, point="after 3.0 s", planned=2, committed=2, again=2, holds=10)
    yield "the last batch is not in the commit log"
    run.found(committed=1, again=1)


@adversary(1, untested("every planned batch was committed: nothing was in flight"), twin=held("1 loss", "1 repetition"))
def a_zombie_committed_the_batch(run: RunBuilder) -> Iterator[str]:
    """Killed when half of the batch was in the sink. A process that outlived the driver wrote the rest and committed:
    the second snapshot has it in Spark's commit log."""
    run.injection(1, point="after 15 rows", holds=15, again=2)
    run.moments.append(Moment(moment=RESTART, planned=2, committed=2, again=2, holds=20))
    yield "it wrote nothing more"
    run.found(again=1)
    run.found(2, committed=1, again=1, holds=15)
