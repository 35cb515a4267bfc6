"""What the driver executed, as a pure fold of the history: one row for each query, attempt and batch.

A pipeline with a checkpoint has Spark's batches. One that manages its own offsets, or has a consumer group do so, has
a row for each offset range between two saved positions; its batches are counted in the order of the saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise

from harness.history import (
    AttemptEnded,
    AttemptStarted,
    BatchCommitted,
    BatchPlanned,
    CheckpointOp,
    Line,
    OfBatch,
    OffsetsSaved,
    QueryStarted,
    SinkCommitted,
    SourceBegun,
    TaskEnded,
    TaskStarted,
)
from harness.operation import file_batch

Range = tuple[int, int]
"""The first offset of a partition, and the one after the last."""


class Outcome(StrEnum):
    """How an execution ended. `cut short`: its attempt ended before the batch was committed. `open`: neither is
    known."""

    COMMITTED = "committed"
    CUT_SHORT = "cut short"
    OPEN = "open"


@dataclass(frozen=True, kw_only=True)
class Task:
    """One attempt of a task. `ended` and `outcome` are None where the driver was killed before it reported the end:
    the task may have run or not. Seconds since the run began."""

    stage: int
    stage_attempt: int
    partition: int
    attempt_number: int
    executor: str
    began: float
    ended: float | None = None
    outcome: str | None = None


@dataclass(frozen=True, kw_only=True)
class Execution:
    """One attempt's work on one batch of one query. `ranges` are the offsets that the batch reads of the run's source,
    by partition; empty where the source is another, or they are not known. `in_sink` is when the sink had the batch.
    `query_starts` is when the attempt started the query: more than once where the program restarts it. Seconds since
    the run began."""

    query: str
    attempt: int
    batch: int
    began: float
    ranges: Mapping[int, Range] = field(default_factory=dict)
    in_sink: float | None = None
    ended: float | None = None
    outcome: Outcome = Outcome.OPEN
    tasks: tuple[Task, ...] = ()
    query_starts: tuple[float, ...] = ()


def executions(history: Iterable[Line]) -> list[Execution]:
    """Return every execution of the run, by query, then in the order in which they began."""
    lines = list(history)
    ends = _ends(lines)
    found = [*_of_checkpoints(lines), *_of_saved_offsets(lines)]
    return [_ended(each, ends) for each in found]


def _ends(lines: Sequence[Line]) -> dict[int, float]:
    """Return by attempt, when it ended: as it was seen, or when the next one began."""
    ends = {line.event.attempt: line.at_s for line in lines if isinstance(line.event, AttemptEnded)}
    started = [(line.event.attempt, line.at_s) for line in lines if isinstance(line.event, AttemptStarted)]
    for (attempt, _), (_, next_s) in pairwise(started):
        ends.setdefault(attempt, next_s)
    return ends


def _ended(found: Execution, ends: Mapping[int, float]) -> Execution:
    if found.outcome is Outcome.OPEN and found.attempt in ends:
        return replace(found, outcome=Outcome.CUT_SHORT, ended=ends[found.attempt])
    return found


def _of_checkpoints(lines: Sequence[Line]) -> Iterator[Execution]:
    queries = dict.fromkeys(place[0] for line in lines if (place := _place(line)) is not None)
    for query in queries:
        starts = _starts(query, lines)
        for life in _lives(query, lines):
            for each in _committed_unseen(_of_query(query, life)):
                yield replace(each, query_starts=starts.get(each.attempt, ()))


def _starts(query: str, lines: Sequence[Line]) -> dict[int, tuple[float, ...]]:
    """Return by attempt, when it started a query."""
    found: dict[int, tuple[float, ...]] = {}
    for line in lines:
        if isinstance(line.event, QueryStarted) and line.event.query == query:
            found[line.event.attempt] = (*found.get(line.event.attempt, ()), line.at_s)
    return found


def _lives(query: str, lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the events of a query, apart for each time that its checkpoint was begun: numbers of batches begin
    again."""
    life: list[Line] = []
    planned = False
    for line in lines:
        event = line.event
        if isinstance(event, SourceBegun) and event.query == query and planned:
            yield life
            life, planned = [], False
        place = _place(line)
        if place is not None and place[0] == query:
            life.append(line)
            planned = planned or isinstance(event, BatchPlanned)
    yield life


def _place(line: Line) -> tuple[str, int, int] | None:
    """Return the query, attempt and batch that an event is of; None if it is of none."""
    event = line.event
    if isinstance(event, SourceBegun):
        return None
    if isinstance(event, OfBatch | TaskStarted):
        return event.query, event.attempt, event.batch
    if isinstance(event, CheckpointOp) and (batch := file_batch(event.path)) is not None:
        return event.query, event.attempt, batch
    return None


def _of_query(query: str, lines: Sequence[Line]) -> list[Execution]:
    found: dict[tuple[int, int], Execution] = {}
    ranges: dict[int, Mapping[int, Range]] = {}
    for line in lines:
        event, place = line.event, _place(line)
        if place is None or _only_kept(event):
            continue
        key = place[1:]
        if isinstance(event, BatchPlanned):
            ranges[event.batch] = event.ranges
        known = found.get(key) or Execution(query=query, attempt=key[0], batch=key[1], began=line.at_s)
        if isinstance(event, SinkCommitted):
            known = replace(known, in_sink=line.at_s)
        elif isinstance(event, BatchCommitted):
            known = replace(known, outcome=Outcome.COMMITTED, ended=line.at_s)
        found[key] = known
    tasks = _tasks(lines)
    return [replace(each, ranges=ranges.get(each.batch, {}), tasks=tasks.get(key, ())) for key, each in found.items()]


def _only_kept(event: object) -> bool:
    """Return whether it is no work on the batch, such as the deletion of an old file of it."""
    return isinstance(event, CheckpointOp) and event.op not in ("create", "rename")


def _committed_unseen(found: list[Execution]) -> Iterator[Execution]:
    """Yield the same. A driver may be killed after `commits/N` was there and before anything reported it: then the next
    attempt of the query goes on behind batch N."""
    first: dict[int, int] = {}
    for each in found:
        first[each.attempt] = min(each.batch, first.get(each.attempt, each.batch))
    for each in found:
        later = [attempt for attempt in first if attempt > each.attempt]
        if each.outcome is Outcome.OPEN and later and first[min(later)] > each.batch:
            yield replace(each, outcome=Outcome.COMMITTED)
        else:
            yield each


def _tasks(lines: Sequence[Line]) -> dict[tuple[int, int], tuple[Task, ...]]:
    """Return by attempt and batch, its tasks in the order in which they began. Start and end may arrive in any
    order."""
    found: dict[tuple[int, int], dict[tuple[int, ...], Task]] = {}
    for line in lines:
        event = line.event
        if not isinstance(event, TaskStarted):
            continue
        number = (event.stage, event.stage_attempt, event.partition, event.attempt_number)
        mine = found.setdefault((event.attempt, event.batch), {})
        known = mine.get(number) or Task(
            stage=event.stage,
            stage_attempt=event.stage_attempt,
            partition=event.partition,
            attempt_number=event.attempt_number,
            executor=event.executor,
            began=line.at_s,
        )
        if isinstance(event, TaskEnded):
            known = replace(known, ended=line.at_s, outcome=event.outcome)
        mine[number] = known
    return {key: tuple(tasks.values()) for key, tasks in found.items()}


def _of_saved_offsets(lines: Sequence[Line]) -> Iterator[Execution]:
    """Yield a batch for each offset range between two saved positions; an attempt's first position begins its first."""
    at: dict[int, tuple[float, Mapping[int, int]]] = {}
    number = 0
    for line in lines:
        event = line.event
        if not isinstance(event, OffsetsSaved):
            continue
        if event.attempt in at:
            began, before = at[event.attempt]
            moved = {p: (before.get(p, 0), end) for p, end in event.next.items() if end != before.get(p, 0)}
            if moved:
                yield Execution(
                    query="", attempt=event.attempt, batch=number, began=began, ranges=moved, in_sink=line.at_s,
                    ended=line.at_s, outcome=Outcome.COMMITTED,
                )  # fmt: skip
                number += 1
        at[event.attempt] = (line.at_s, event.next)
    for attempt, (began, _) in sorted(at.items()):
        # What it read after its last save is not known.
        yield Execution(query="", attempt=attempt, batch=number, began=began)
        number += 1
