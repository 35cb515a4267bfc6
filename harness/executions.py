"""What the driver executed, as a pure fold of the history: one row for each query, attempt and batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from harness.history import Line, QueryStarted, TaskEnded, TaskStarted


@dataclass(frozen=True, kw_only=True)
class Task:
    """One attempt of a task. `ended` is None where the driver was killed before it reported the end: the task may have
    run or not. Seconds since the run began."""

    stage_attempt: int
    attempt_number: int
    executor: str
    began: float
    ended: float | None = None


@dataclass(frozen=True, kw_only=True)
class Execution:
    """One attempt's work on one batch of one query: its tasks, in the order in which they began. `query_starts` is when
    the attempt started the query: more than once where the program restarts it. Seconds since the run began."""

    query: str
    attempt: int
    batch: int
    tasks: tuple[Task, ...]
    query_starts: tuple[float, ...] = ()


def executions(history: Iterable[Line]) -> list[Execution]:
    """Return every execution that Spark reported a task of. Start and end of a task may arrive in any order."""
    starts = defaultdict[tuple[str, int], list[float]](list)
    found = defaultdict[tuple[str, int, int], dict[tuple[int, ...], Task]](dict)
    for line in history:
        event = line.event
        if isinstance(event, QueryStarted):
            starts[event.query, event.attempt].append(line.at_s)
        elif isinstance(event, TaskStarted):
            tasks = found[event.query, event.attempt, event.batch]
            number = (event.stage, event.stage_attempt, event.partition, event.attempt_number)
            known = tasks.get(number) or Task(
                stage_attempt=event.stage_attempt,
                attempt_number=event.attempt_number,
                executor=event.executor,
                began=line.at_s,
            )
            tasks[number] = replace(known, ended=line.at_s) if isinstance(event, TaskEnded) else known
    return [
        Execution(
            query=query,
            attempt=attempt,
            batch=batch,
            tasks=tuple(tasks.values()),
            query_starts=tuple(starts[query, attempt]),
        )
        for (query, attempt, batch), tasks in found.items()
    ]
