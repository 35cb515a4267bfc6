"""The events of a journal as what happened: attempts of the driver, work on batches, faults, phases.

Pure, and patient: an event without a time, or of a form that is not ours, is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.scenario import CrashPoint, StepOutcome

Event = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One start of the driver. `end` is when it was seen dead, None if it was not; `status` its exit status then;
    `scheduled`: a fault ended it. `after_s` is how long after the death before it began, `orphans` how many of dead
    attempts lived; `diagnostics` what a cluster manager says of its end."""

    number: int
    begin: float
    end: float | None = None
    status: int | None = None
    scheduled: bool = False
    after_s: float | None = None
    orphans: int = 0
    diagnostics: str = ""


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
class Blow:
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
    """The run as its journal tells it; all times in seconds since it began. `end` is when the sinks had been read, or
    the last that is known; `sent` and `read` are (seconds, how many in all)."""

    end: float
    phases: tuple[Phase, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    works: tuple[Work, ...] = ()
    blows: tuple[Blow, ...] = ()
    sent: tuple[tuple[float, int], ...] = ()
    read: tuple[tuple[float, int], ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """The checkpoints that were at work, in the order in which they appeared."""
        return tuple(dict.fromkeys(work.query for work in self.works))


def happened(journal: Sequence[Event], steps: Sequence[StepOutcome]) -> Happened | None:
    """What a journal tells; None if no event of it has a time."""
    events = [event for event in journal if at(event) is not None]
    if not events:
        return None
    phases, end = _phases(events)
    attempts = tuple(_attempts(events))
    return Happened(
        end=end,
        phases=phases,
        attempts=attempts,
        works=tuple(_works(events, {each.number: each for each in attempts})),
        blows=tuple(_blows(events, steps, attempts)),
        sent=tuple(_counts(_of(events, "sent"), "records")),
        read=tuple(_counts(_of(events, "snapshot"), "rows")),
    )


def at(event: Event) -> float | None:
    """When it was, None if it does not say."""
    return _time(event.get("at_s"))


def _time(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and 0 <= value < 1e9 else None


def number(event: Event, name: str) -> int | None:
    """A whole number of an event, None if it has none."""
    value = event.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _of(events: Iterable[Event], what: str) -> Iterator[tuple[float, Event]]:
    for event in events:
        seconds = at(event)
        if event.get("what") == what and seconds is not None:
            yield seconds, event


def _phases(events: Sequence[Event]) -> tuple[tuple[Phase, ...], float]:
    """The phases up to the judging, which begins when all is over, and when that was."""
    begun = [(seconds, str(event.get("name", ""))) for seconds, event in _of(events, "phase")]
    end = next((seconds for seconds, name in begun if name == "judging"), max(at(event) or 0.0 for event in events))
    kept = [each for each in begun if each[0] < end]
    ends = [*(seconds for seconds, _ in kept[1:]), end]
    phases = [Phase(name=name, begin=seconds, end=last) for (seconds, name), last in zip(kept, ends, strict=False)]
    return tuple(phases), end


def _attempts(events: Sequence[Event]) -> Iterator[Attempt]:
    deaths = {number(event, "number"): (seconds, event) for seconds, event in _of(events, "died")}
    said = {number(event, "number"): event.get("words") for _, event in _of(events, "diagnostics")}
    for seconds, event in _of(events, "launched"):
        which = number(event, "number")
        if which is None:
            continue
        attempt = Attempt(
            number=which,
            begin=seconds,
            after_s=_time(event.get("after_s")),
            orphans=len(orphans) if isinstance(orphans := event.get("orphans"), list) else 0,
            diagnostics=words if isinstance(words := said.get(which), str) else "",
        )
        if which in deaths:
            end, death = deaths[which]
            scheduled = death.get("scheduled") is True
            attempt = replace(attempt, end=end, status=number(death, "status"), scheduled=scheduled)
        yield attempt


POINTS = {
    CrashPoint.BATCH_PLANNED.value: "planned",
    CrashPoint.SINK_COMMITTED.value: "in_sink",
    CrashPoint.BATCH_COMMITTED.value: "committed",
}


def _works(events: Sequence[Event], attempts: Mapping[int, Attempt]) -> Iterator[Work]:
    seen: dict[tuple[str, int, int], dict[str, float]] = {}
    for seconds, event in _of(events, "batch"):
        point, batch, attempt = POINTS.get(str(event.get("point"))), number(event, "batch"), number(event, "attempt")
        if point is not None and batch is not None and attempt is not None:
            seen.setdefault((str(event.get("checkpoint", "")), attempt, batch), {}).setdefault(point, seconds)
    for (query, attempt, batch), points in seen.items():
        known = attempts.get(attempt)
        ended = known.end if known is not None and "committed" not in points else None
        yield Work(query=query, batch=batch, attempt=attempt, ended=ended, **points)


def _blows(events: Sequence[Event], steps: Sequence[StepOutcome], attempts: Sequence[Attempt]) -> Iterator[Blow]:
    looks = {
        number(event, "step"): seconds - (_time(event.get("seconds")) or 0.0)
        for seconds, event in _of(events, "snapshot")
        if event.get("moment") == "injection"
    }
    for place, step in enumerate(steps, 1):
        if step.at_s is None:
            continue
        begins = [step.at_s, *([looks[place]] if place in looks else [])]
        begins += [
            each.end
            for each in attempts
            if each.number == step.attempt and each.scheduled and each.end is not None and step.hit
        ]
        yield Blow(number=place, step=step, begin=max(0.0, min(begins)), end=step.at_s)


def _counts(events: Iterable[tuple[float, Event]], name: str) -> Iterator[tuple[float, int]]:
    for seconds, event in events:
        count = number(event, name)
        if count is not None:
            yield seconds, count
