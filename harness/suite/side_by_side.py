"""Runs of a suite side by side: each in a thread, all on one stack, with resources of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

from harness.component import needs
from harness.faults import FAULTS
from harness.scenario import Scenario
from harness.stack import Means

Outcome = TypeVar("Outcome")


def alone(scenario: Scenario) -> bool:
    """Does a step of it hit what other runs use too?"""
    return any(Means.RESTART_COMPONENTS in FAULTS[step.do.kind].needs for step in scenario.schedule)


def hit_components(work: Sequence[Scenario]) -> frozenset[str]:
    """The components that a step of any of them hits."""
    steps = (step for scenario in work if alone(scenario) for step in scenario.schedule)
    return frozenset(name for step in steps for name in needs(FAULTS[step.do.kind]))


@contextmanager
def threads(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """For so many runs at once. On leaving, those that have begun are waited for: end the stack before that, and they
    fail."""
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="job")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def played(
    work: Sequence[Scenario], pool: ThreadPoolExecutor, play: Callable[[int, Scenario], Outcome]
) -> Iterator[Outcome]:
    """The outcome of each run as it is over, those that must be alone last. What `play` raises ends it; what has not
    begun by then never will."""
    numbered = list(enumerate(work, 1))
    beside: list[Future[Outcome]] = [pool.submit(play, *each) for each in numbered if not alone(each[1])]
    try:
        for done in as_completed(beside):
            yield done.result()
        for number, scenario in numbered:
            if alone(scenario):
                yield pool.submit(play, number, scenario).result()
    finally:
        for each in beside:
            each.cancel()
