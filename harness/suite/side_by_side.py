"""Runs of a suite side by side: each in a thread with its own resources, all on one stack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from functools import partial

from harness.component import needs
from harness.errors import HarnessError, Interrupted
from harness.faults import FAULTS
from harness.hosts.in_parallel import Pool, Task
from harness.scenario import Scenario
from harness.stack import PROMISED_CORES, Means
from harness.stacks.needed_parts import component_names
from harness.wait import ended_by

END_WITHIN_S = 60.0
RUN_WITHIN_S = 86_400.0
"""The wait has no limit: each run ends by its own deadlines."""
STACK_BYTES, RUN_BYTES, EXECUTOR_BYTES = 1 * 2**30, 2**30, 2 * 2**30 // 5
"""What a stack takes, each run on it of up to two executors, and each further executor; and some more."""
MOST = 8
"""Runs at once: Postgres takes a hundred connections, and the worker promises cores for so many runs."""


def alone(scenario: Scenario) -> bool:
    """Return whether a step of it strikes what other runs use too."""
    return any(Means.RESTART_COMPONENTS in FAULTS[step.do.kind].needs for step in scenario.schedule)


def struck_components(work: Sequence[Scenario]) -> frozenset[str]:
    """Return the components that a step of any of them strikes; of a sweep all."""
    steps = (step for scenario in work if alone(scenario) for step in scenario.schedule)
    swept = (scenario for scenario in work if scenario.crash_points)
    names = [*(needs(FAULTS[step.do.kind]) for step in steps), *map(component_names, swept)]
    return frozenset(name for each in names for name in each)


def run_bytes(scenario: Scenario) -> int:
    """Return what a run of it takes."""
    return RUN_BYTES + max(0, scenario.pipeline.executors - 2) * EXECUTOR_BYTES


def jobs(work: Sequence[Scenario], *, cores: int, memory: int) -> int:
    """Return how many runs at once of `work` where no option says it, whichever of them meet. `memory` in bytes
    (bench/README.md has the measurements): a run keeps more than a core busy, so that more runs than cores make none of
    them faster."""
    bytes_, most = STACK_BYTES, min(cores, most_promised(work))
    for number, each in enumerate(_largest(work)[:most]):
        bytes_ += run_bytes(each)
        if bytes_ > memory:
            return max(1, number)
    return max(1, min(len(work), most))


def most_promised(work: Sequence[Scenario]) -> int:
    """Return how many runs at once of `work`, whichever of them meet, have the cores that the worker promises."""
    promised = 0
    for number, each in enumerate(_largest(work)[:MOST]):
        # Those of the attempt, and of the dead one before it.
        promised += 2 * max(2, each.pipeline.executors)
        if promised > PROMISED_CORES:
            return max(1, number)
    return MOST


def _largest(work: Sequence[Scenario]) -> list[Scenario]:
    return sorted(work, key=lambda each: each.pipeline.executors, reverse=True)


@contextmanager
def threads(jobs: int) -> Iterator[Pool]:
    """For so many runs at once. On leaving, those that have begun are waited for; one that does not end in time is left
    behind. Raises HarnessError that names it."""
    pool = Pool(jobs)
    try:
        yield pool
    except BaseException as first:
        left = pool.close(within_s=END_WITHIN_S)
        if left and isinstance(first, HarnessError | Interrupted):
            first.args = (f"{first}\nand then: {_hang(left)}",)
        raise
    if left := pool.close(within_s=END_WITHIN_S):
        raise HarnessError(_hang(left))


def _hang(names: Sequence[str]) -> str:
    return f"still at work {END_WITHIN_S:g} s after the end of the suite: {', '.join(names)}"


def played(work: Sequence[Scenario], pool: Pool, play: Callable[[int, Scenario], None]) -> None:
    """Play each, those that must be alone last."""

    def tasks(numbered: Sequence[tuple[int, Scenario]]) -> dict[str, Task]:
        return {f"run {each[0]} ({each[1].name})": partial(play, *each) for each in numbered}

    numbered = list(enumerate(work, 1))
    together(tasks([each for each in numbered if not alone(each[1])]), pool)
    for each in numbered:
        if alone(each[1]):
            together(tasks([each]), pool)


def together(tasks: Mapping[str, Task], pool: Pool, *, within_s: float = RUN_WITHIN_S) -> None:
    """Each in a thread of the pool, under its name. What one of them raises, or what interrupts this, ends the others
    at their next wait, and what has not begun by then never will. Raises HarnessError if none ends in `within_s`."""
    why: list[BaseException] = []

    def interrupted() -> Interrupted | None:
        return Interrupted(f"the suite ended: {why[0]}") if why else None

    def one(task: Task) -> None:
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
        begun += (pool.submit(name, partial(one, task)) for name, task in tasks.items())
        left = {*begun}
        while left:
            done, left = wait(left, timeout=within_s, return_when=FIRST_COMPLETED)
            if not done:
                raise HarnessError(f"waited {within_s:g} s for one of {len(left)} runs to end")
            for each in done:
                each.result()
    except BaseException as failure:
        why.append(failure)
        for each in begun:
            each.cancel()
        # While the stack is still there to end them on.
        wait(begun, timeout=END_WITHIN_S)
    if why:
        # The first: those that it ended have failed too.
        raise why[0]
