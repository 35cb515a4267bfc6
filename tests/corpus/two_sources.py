"""Item 12: a query, or several, with two sources on the topic is as far as the slower of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Kind
from tests.corpus.case import adversary, held, unknown, violated, void
from tests.corpus.nothing_written import AUDIT, PAYMENTS
from tests.corpus.scene import CHECKPOINT, Scene, blame, query, state
from tests.folders import PER_RECORD

EARLY = blame(1, window="offsets-written")


@adversary(12, unknown("lie beyond", kinds={}, shown=None), twin=violated(Kind.LOST, 10, fits=None))
def drained_by_the_faster_half(run: Scene) -> Iterator[str]:
    """A union of two readings of the topic: one of them was at its end, and the run calls all drained. The other one
    had ten records to go, and their rows are missing."""
    run.queries = [query("checkpoint", 10, 20, 30, first={1: 0, 2: 1})]
    run.strike(1, window="offsets-written", holds=10)
    run.tables = [run.rows((0, 30))]
    run.calm()
    yield "the slower half was at its end as well"
    run.queries = None


@adversary(12, unknown("lie beyond", kinds={}, shown=None), twin=violated(Kind.LOST, 10, fits=None))
def drained_by_the_faster_query(run: Scene) -> Iterator[str]:
    """Two queries read the topic, and the run was called drained by the one that feeds another sink."""
    run.sink(replace(PER_RECORD, query="payments"))
    first = {1: 0, 2: 1}
    run.queries = [query(AUDIT, *run.ends, first=first), query(PAYMENTS, 10, 20, 30, first=first)]
    busy = {"planned": (2, 20), "committed": (1, 10)}
    run.strike(1, window="offsets-written", checkpoint=PAYMENTS, holds=10)
    run.found(states=(state(AUDIT, **busy), state(PAYMENTS, **busy)))
    run.tables = [run.rows((0, 30))]
    run.calm()
    yield "the query that feeds this sink was at the end too"
    run.queries = [query(name, *run.ends, first=first) for name in (AUDIT, PAYMENTS)]


@adversary(12, void("no record was in hand of all of them"), twin=held("1 repetition"))
def the_faster_half_had_it(run: Scene) -> Iterator[str]:
    """A union of two readings of the topic. One of them had committed ten records more, whose rows are in the sink; the
    batch that was struck brought the other one there. None of these rows are the struck batch's."""
    there = state(CHECKPOINT, planned=(2, 20), committed=(1, 10))
    run.strike(1, states=(replace(there, committed_most={0: 20}, planned_most={0: 20}),))
    yield "both halves had committed as much"
    run.found(states=(there,))


@adversary(12, held("1 repetition"), twin=void("no record was in hand of all of them"))
def a_total_of_two_halves(run: Scene) -> Iterator[str]:
    """The faster half stood five records ahead, before the struck batch and after it. What both had in hand counts by
    its own rows."""
    there = state(CHECKPOINT, planned=(2, 20), committed=(1, 10))
    run.strike(1, states=(replace(there, committed_most={0: 15}, planned_most={0: 25}),), holds=25)
    yield "it stood ten ahead, where the other one was to come"
    run.found(states=(replace(there, committed_most={0: 20}, planned_most={0: 30}),), holds=30)
