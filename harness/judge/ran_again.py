"""Rule 2 where the driver lived: whether the history shows that a batch ran again in the same attempt."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from harness.history import Line, QueryStarted, TaskStarted


class Ran(Enum):
    """How a batch ran again. `RETRIED`: tasks that had not finished. `RESTARTED`: all of it, since its query was
    started again. `NO`: its tasks are known, and none was started again. `UNKNOWN`: no agent was in the driver."""

    UNKNOWN = auto()
    NO = auto()
    RETRIED = auto()
    RESTARTED = auto()


def ran_again(lines: Iterable[Line], *, since_s: float, attempt: int, query: str, batch: int | None) -> Ran:
    """Return how a batch ran again in an attempt after `since_s`, as far as the history has its tasks."""
    known, restarted, out = False, False, Ran.NO
    for line in lines:
        event = line.event
        if isinstance(event, QueryStarted) and (event.query, event.attempt) == (query, attempt):
            restarted = restarted or line.at_s > since_s
        if type(event) is TaskStarted and (event.query, event.attempt, event.batch) == (query, attempt, batch):
            known = True
            if line.at_s > since_s and restarted:
                return Ran.RESTARTED
            if line.at_s > since_s and (event.attempt_number or event.stage_attempt):
                out = Ran.RETRIED
    return out if known else Ran.UNKNOWN
