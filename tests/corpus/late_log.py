"""Item 2: an offset log that is a position and no plan, as Spark writes it with AsyncProgressTracking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.corpus.case import adversary, held, untested
from tests.corpus.run_builder import RunBuilder, query


@adversary(2, untested("goes from batch 1 to batch 3"), twin=held("1 repetition"))
def a_log_that_skips_a_batch(run: RunBuilder) -> Iterator[str]:
    """Spark logged no offsets for batch 2, whose records batch 3 seems to have taken. So it may have had any batch in
    flight at the injection, or none."""
    run.injection(1)
    whole = query("checkpoint", *run.ends, first={1: 0, 2: 1})
    last = replace(whole.batches[3], ranges={0: (20, 40)})
    run.queries = [replace(whole, batches=(*whole.batches[:2], last))]
    yield "it has the offsets of every batch"
    run.queries = [whole]


@adversary(2, untested("progress is async"), twin=held("1 repetition"))
def a_log_that_is_said_to_be_late(run: RunBuilder) -> Iterator[str]:
    """Batches were slow, so that Spark logged the offsets of each: none is skipped, and none was logged in time."""
    run.injection(1)
    run.claim(pipeline=replace(run.scenario.pipeline, progress="async"))
    yield "Spark logs offsets before a batch begins"
    run.claim(pipeline=replace(run.scenario.pipeline, progress="checkpoint"))


@adversary(2, untested("async-log-write"), twin=held("1 repetition"))
def a_log_without_a_gap_that_a_thread_writes(run: RunBuilder) -> Iterator[str]:
    """Batches were slow, so that Spark logged the offsets of each, and nobody said that it does so beside them."""
    run.injection(1, late_log=True)
    yield "Spark has no such thread"
    run.found(late_log=False)
