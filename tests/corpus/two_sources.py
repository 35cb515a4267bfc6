"""Item 12: a query, or several, with two sources on the topic is as far as the slower of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Kind
from tests.corpus.case import adversary, held, inconclusive, untested, violated
from tests.corpus.counters import counting
from tests.corpus.nothing_written import AUDIT, PAYMENTS
from tests.corpus.run_builder import CHECKPOINT, RunBuilder, blame, query, state
from tests.folders import PER_RECORD


@adversary(
    12,
    inconclusive("not caught up: not all records of the source are committed,"),
    twin=violated(Kind.LOST, 10, blame(point="batch-planned"), fits=None),
)
def caught_up_by_the_faster_half(run: RunBuilder) -> Iterator[str]:
    """A union of two readings of the topic: one of them was at its end, and the run calls all caught up. The other one
    had ten records to go, and their rows are missing."""
    run.queries = [query("checkpoint", 10, 20, 30, first={1: 0, 2: 1})]
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 30))]
    run.calm()
    yield "the slower half was at its end as well"
    run.queries = None


@adversary(
    12,
    inconclusive("not caught up: not all records of the source are committed,"),
    twin=violated(Kind.LOST, 10, blame(point="batch-planned", of="checkpoints/payments"), fits=None),
)
def caught_up_by_the_faster_query(run: RunBuilder) -> Iterator[str]:
    """Two queries read the topic, and the run was called caught up by the one that feeds another sink."""
    run.sink(replace(PER_RECORD, query="payments"))
    first = {1: 0, 2: 1}
    run.queries = [query(AUDIT, *run.ends, first=first), query(PAYMENTS, 10, 20, 30, first=first)]
    busy = {"planned": (2, 20), "committed": (1, 10)}
    run.injection(1, point="batch-planned", checkpoint=PAYMENTS, holds=10)
    run.found(states=(state(AUDIT, **busy), state(PAYMENTS, **busy)))
    run.tables = [run.rows((0, 30))]
    run.calm()
    yield "the query that feeds this sink was at the end too"
    run.queries = [query(name, *run.ends, first=first) for name in (AUDIT, PAYMENTS)]


@adversary(12, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 repetition"))
def the_faster_half_had_it(run: RunBuilder) -> Iterator[str]:
    """A union of two readings of the topic. One of them had committed ten records more, whose rows are in the sink; the
    batch that was struck brought the other one there. None of these rows are the struck batch's."""
    there = state(CHECKPOINT, planned=(2, 20), committed=(1, 10))
    run.injection(1, states=(replace(there, committed_most={0: 20}, planned_most={0: 20}),))
    yield "both halves had committed as much"
    run.found(states=(there,))


@adversary(
    4,
    inconclusive("at the reading of step 1, 2 totals of postgres totals were not those of the"),
    twin=held("1 repetition"),
)
def errors_that_cancel_between_two_halves(run: RunBuilder) -> Iterator[str]:
    """One of two readings stood a record ahead. When the fault struck batch 2, batch 0 was in the totals twice;
    that batch 3, of the same size, was lost afterwards makes them right again."""
    counting(run, 2, 3, 5, 2)
    run.records[10]["account"] = "b"
    there = state(CHECKPOINT, planned=(3, 20), committed=(2, 10))
    run.injection(2, states=(replace(there, committed_most={0: 11}),), tables=[run.rows((0, 20), again=[(0, 4)])])
    yield "the totals were right when the fault was injected"
    run.found(tables=[run.rows((0, 20))])
