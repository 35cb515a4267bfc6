"""Runs of a suite side by side: each in a thread, all on one stack, with resources of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from functools import partial

from harness.component import needs
from harness.errors import Interrupted
from harness.faults import FAULTS
from harness.scenario import Scenario
from harness.stack import Means
from harness.wait import ended_by

END_WITHIN_S = 60.0
STACK_BYTES, RUN_BYTES = 1 * 2**30, 3 * 2**29
"""What a stack takes, and each run on it with its standby, and some more."""
MOST = 8
"""Runs at once: Postgres takes a hundred connections, and the worker promises cores for so many runs."""


def alone(scenario: Scenario) -> bool:
    """Does a step of it hit what other runs use too?"""
    return any(Means.RESTART_COMPONENTS in FAULTS[step.do.kind].needs for step in scenario.schedule)


def hit_components(work: Sequence[Scenario]) -> frozenset[str]:
    """The components that a step of any of them hits."""
    steps = (step for scenario in work if alone(scenario) for step in scenario.schedule)
    return frozenset(name for step in steps for name in needs(FAULTS[step.do.kind]))


def jobs(runs: int, *, cores: int, memory: int) -> int:
    """How many of so many runs are played at once where nobody says it. `memory` in bytes (bench/README.md has the
    measurements): a run keeps more than a core busy, so that more runs than cores make none of them faster."""
    return max(1, min(runs, cores, MOST, (memory - STACK_BYTES) // RUN_BYTES))


def standby(jobs: int, *, cores: int) -> bool:
    """Does a driver wait ready for each restart where nobody says it? Only where cores are idle meanwhile."""
    return cores >= 2 * jobs + 2


@contextmanager
def threads(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """For so many runs at once. On leaving, those that have begun are waited for."""
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="job")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def played(work: Sequence[Scenario], pool: ThreadPoolExecutor, play: Callable[[int, Scenario], None]) -> None:
    """Play each, those that must be alone last."""
    numbered = list(enumerate(work, 1))
    together([partial(play, *each) for each in numbered if not alone(each[1])], pool)
    for each in numbered:
        if alone(each[1]):
            together([partial(play, *each)], pool)


def together(tasks: Sequence[Callable[[], None]], pool: ThreadPoolExecutor) -> None:
    """Each in a thread of the pool. What one of them raises, or what interrupts this, ends the others at their next
    wait, and what has not begun by then never will."""
    why: list[BaseException] = []

    def interrupted() -> Interrupted | None:
        return Interrupted(f"the suite ended: {why[0]}") if why else None

    def one(task: Callable[[], None]) -> None:
        if why:
            return
        try:
            with ended_by(interrupted):
                task()
        except BaseException as failure:
            # Before this thread takes the next one.
            why.append(failure)
            raise

    begun: list[Future[None]] = []
    try:
        begun += (pool.submit(one, task) for task in tasks)
        for done in as_completed(begun):
            done.result()
    except BaseException as failure:
        why.append(failure)
        for each in begun:
            each.cancel()
        # While the stack is still there to end them on.
        wait(begun, timeout=END_WITHIN_S)
    if why:
        # The first: those that it ended have failed too.
        raise why[0]
