"""Rule 2 where the driver lived: whether a batch ran again in the same attempt, by its executions."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from harness.executions import Execution

DRIVER = "driver"
"""What Spark calls the executor of a local master."""


class Ran(Enum):
    """How a batch ran again. `RETRIED`: tasks that had not finished. `RESTARTED`: all of it, since its query was
    started again. `NO`: its tasks are known, and none was started again. `DONE`: so it is, and all had ended by then.
    `UNKNOWN`: no task of it is known."""

    UNKNOWN = auto()
    NO = auto()
    DONE = auto()
    RETRIED = auto()
    RESTARTED = auto()


def ran_again(executions: Sequence[Execution], *, since_s: float) -> Ran:
    """Return how a batch ran again in its attempt after `since_s`, as far as its executions have tasks."""
    tasks = [task for each in executions for task in each.tasks]
    if not tasks:
        return Ran.UNKNOWN
    restarts = [at for each in executions for at in each.query_starts if at > since_s]
    if restarts and any(task.began > min(restarts) for task in tasks):
        return Ran.RESTARTED
    retries = (task for task in tasks if task.attempt_number or task.stage_attempt)
    if any(task.began > since_s for task in retries):
        return Ran.RETRIED
    return Ran.DONE if all(task.ended is not None and task.ended <= since_s for task in tasks) else Ran.NO


def in_the_driver(executions: Sequence[Execution]) -> bool:
    """Return whether tasks ran in the driver itself: its master is local, whatever the stack has."""
    return any(task.executor == DRIVER for each in executions for task in each.tasks)
