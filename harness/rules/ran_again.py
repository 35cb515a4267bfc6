"""Rule 2 where the driver lived: whether the history shows that a batch ran again in the same attempt."""

from __future__ import annotations

from collections.abc import Iterable

from harness.history import Line, QueryStarted, TaskStarted


def ran_again(lines: Iterable[Line], *, since_s: float, attempt: int, query: str, batch: int | None) -> bool | None:
    """Return whether tasks of a batch were started again after `since_s`: by a retry, or since the query was started
    again. None where the history has no task of that batch: no agent was in the driver."""
    known, restarted = False, False
    for line in lines:
        event = line.event
        if isinstance(event, QueryStarted) and (event.query, event.attempt) == (query, attempt):
            restarted = restarted or line.at_s > since_s
        if type(event) is TaskStarted and (event.query, event.attempt, event.batch) == (query, attempt, batch):
            known = True
            if line.at_s > since_s and (restarted or event.attempt_number or event.stage_attempt):
                return True
    return False if known else None
