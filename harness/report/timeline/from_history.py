"""The events of a history as what happened: attempts of the driver, work on batches, faults, phases. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from harness import history as events
from harness.history import (
    AttemptDiagnosed,
    AttemptEnded,
    AttemptStarted,
    BatchCommitted,
    BatchPlanned,
    Event,
    Line,
    OfBatch,
    Sent,
    SinkCommitted,
    SinkRead,
)
from harness.scenario import StepOutcome

Some = TypeVar("Some", bound=Event)
POINTS: Mapping[type[OfBatch], str] = {BatchPlanned: "planned", SinkCommitted: "in_sink", BatchCommitted: "committed"}


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One start of the driver. `end` is when it was seen dead, None if it was not; `status` its exit status then;
    `scheduled`: a fault ended it. `after_s` is how long after the death before it began, `zombies` how many of dead
    attempts lived; `diagnostics` what a cluster manager says of its end, `error` what its program ended with."""

    number: int
    begin: float
    end: float | None = None
    status: int | None = None
    scheduled: bool = False
    after_s: float | None = None
    zombies: int = 0
    diagnostics: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one attempt did on one batch of one query: when the watch saw each crash point, None where it did not.
    `ended`: when the attempt died before the batch was committed."""

    query: str
    batch: int
    attempt: int
    planned: float | None = None
    in_sink: float | None = None
    committed: float | None = None
    ended: float | None = None


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault. `number` counts the schedule's steps from 1; `begin` is when the harness first saw its effect, `end`
    when it was done with it, a server's absence included."""

    number: int
    step: StepOutcome
    begin: float
    end: float


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of the run."""

    name: str
    begin: float
    end: float


@dataclass(frozen=True, kw_only=True)
class Happened:
    """The run as its history tells it; all times in seconds since it began. `end` is when the sinks had been read, or
    the last that is known; `sent` and `read` are (seconds, how many in all)."""

    end: float = 0.0
    phases: tuple[Phase, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    works: tuple[Work, ...] = ()
    faults: tuple[Fault, ...] = ()
    sent: tuple[tuple[float, int], ...] = ()
    read: tuple[tuple[float, int], ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """The checkpoints that were at work, in the order in which they appeared."""
        return tuple(dict.fromkeys(work.query for work in self.works))


def happened(history: Sequence[Line], steps: Sequence[StepOutcome]) -> Happened:
    """Return what a history tells."""
    phases, end = _phases(history)
    attempts = tuple(_attempts(history))
    return Happened(
        end=end,
        phases=phases,
        attempts=attempts,
        works=tuple(_works(history, {each.number: each for each in attempts})),
        faults=tuple(_faults(history, steps, attempts)),
        sent=tuple((at_s, event.records) for at_s, event in _of(history, Sent)),
        read=tuple((at_s, event.rows) for at_s, event in _of(history, SinkRead)),
    )


def _of(history: Iterable[Line], kind: type[Some]) -> Iterator[tuple[float, Some]]:
    return ((line.at_s, line.event) for line in history if isinstance(line.event, kind))


def _phases(history: Sequence[Line]) -> tuple[tuple[Phase, ...], float]:
    """Return the phases up to the judging, which begins when all is over, and when that was."""
    begun = [(at_s, event.name) for at_s, event in _of(history, events.Phase)]
    end = next((at_s for at_s, name in begun if name == "judging"), max((line.at_s for line in history), default=0.0))
    kept = [each for each in begun if each[0] < end]
    ends = [*(at_s for at_s, _ in kept[1:]), end]
    phases = [Phase(name=name, begin=at_s, end=last) for (at_s, name), last in zip(kept, ends, strict=False)]
    return tuple(phases), end


def _attempts(history: Sequence[Line]) -> Iterator[Attempt]:
    deaths = {event.attempt: (at_s, event) for at_s, event in _of(history, AttemptEnded)}
    diagnosed = {event.attempt: event.words for _, event in _of(history, AttemptDiagnosed)}
    for at_s, event in _of(history, AttemptStarted):
        attempt = Attempt(
            number=event.attempt,
            begin=at_s,
            after_s=event.after_s,
            zombies=len(event.zombies),
            diagnostics=diagnosed.get(event.attempt, ""),
        )
        if event.attempt in deaths:
            end, death = deaths[event.attempt]
            attempt = replace(attempt, end=end, status=death.status, scheduled=death.scheduled, error=death.error)
        yield attempt


def _works(history: Sequence[Line], attempts: Mapping[int, Attempt]) -> Iterator[Work]:
    seen: dict[tuple[str, int, int], dict[str, float]] = {}
    for kind, name in POINTS.items():
        for at_s, event in _of(history, kind):
            seen.setdefault((event.checkpoint, event.attempt, event.batch), {}).setdefault(name, at_s)
    order = [(event.checkpoint, event.attempt, event.batch) for _, event in _of(history, OfBatch)]
    for query, attempt, batch in dict.fromkeys(each for each in order if each in seen):
        points, known = seen[query, attempt, batch], attempts.get(attempt)
        ended = known.end if known is not None and "committed" not in points else None
        yield Work(query=query, batch=batch, attempt=attempt, ended=ended, **points)


def _faults(history: Sequence[Line], steps: Sequence[StepOutcome], attempts: Sequence[Attempt]) -> Iterator[Fault]:
    read_from = {
        event.step: at_s - event.seconds for at_s, event in _of(history, SinkRead) if event.moment == "injection"
    }
    for place, step in enumerate(steps, 1):
        if step.at_s is None:
            continue
        begins = [step.at_s, *([read_from[place]] if place in read_from else [])]
        begins += [
            each.end
            for each in attempts
            if each.number == step.attempt and each.scheduled and each.end is not None and step.injected
        ]
        yield Fault(number=place, step=step, begin=max(0.0, min(begins)), end=step.at_s)
