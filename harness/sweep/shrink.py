"""A scenario that breaks, made smaller for as long as it breaks in the same way: fewer records, fewer partitions, an
earlier batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from harness.load.models import own
from harness.scenario import Scenario, Step
from harness.sources import SOURCES

RECORDS = (30, 60, 150, 300)
"""The sizes that are tried; fewer make no batches of different sizes."""
PARTITIONS = "partitions"
REPEATS = 3
TRIES = 3 + len(RECORDS) + 2 * REPEATS
"""Runs that it takes at most."""


@dataclass(frozen=True, kw_only=True)
class Shrunk:
    """The smallest scenario that was seen to break, and how often it did when it was played again."""

    scenario: Scenario
    repeats: int
    of: int = REPEATS

    @property
    def description(self) -> str:
        """The size of the scenario and how often it breaks, in words."""
        given, batch = self.scenario.input, self.scenario.schedule[0].when.batch
        size = f"{given.records} records" + ("" if batch is None else f", batch {batch}")
        return f"{size}; it breaks {self.repeats} of {self.of} times"


def shrink(scenario: Scenario, first_batch: int, breaks: Callable[[Scenario], bool]) -> Shrunk:
    """Return the smallest scenario that `breaks`, of a scenario that does; one that never breaks again is given back as
    it was. A step in the batch `first_batch` stays there."""
    best = scenario
    for part in _tries(first_batch):
        smaller = part(best)
        if smaller is not None and breaks(smaller):
            best = smaller
    repeats = sum(breaks(best) for _ in range(REPEATS))
    if not repeats and best != scenario:
        best, repeats = scenario, sum(breaks(scenario) for _ in range(REPEATS))
    return Shrunk(scenario=best, repeats=repeats)


Part = Callable[[Scenario], Scenario | None]
"""Makes a scenario smaller; None where it is as small already."""


def _tries(first_batch: int) -> Iterator[Part]:
    """Yield what is tried, the most at once first."""

    def early(given: Scenario) -> Scenario | None:
        return _early(given, first_batch)

    yield lambda given: _all(given, [early, _partition, _records(RECORDS[0])])
    yield early
    yield _partition
    yield from map(_records, RECORDS)


def _all(given: Scenario, parts: Sequence[Part]) -> Scenario | None:
    out = given
    for part in parts:
        out = part(out) or out
    return out if out != given else None


def _records(count: int) -> Part:
    def fewer(given: Scenario) -> Scenario | None:
        smaller = replace(given, input=replace(given.input, records=count))
        return smaller if given.input.records > count else None

    return fewer


def _partition(given: Scenario) -> Scenario | None:
    """Return one partition."""
    known = own(SOURCES[given.input.source].about)
    options = given.input.source_options
    if PARTITIONS not in known or options.get(known[PARTITIONS]) == 1:
        return None
    return replace(given, input=replace(given.input, source_options={**options, known[PARTITIONS]: 1}))


def _early(given: Scenario, first_batch: int) -> Scenario | None:
    """Return the batch after the first one, for steps of a later batch."""
    steps = tuple(_moved(step, first_batch) for step in given.schedule)
    return replace(given, schedule=steps) if steps != given.schedule else None


def _moved(step: Step, first_batch: int) -> Step:
    batch = step.when.batch
    if batch is None or batch <= first_batch + 1:
        return step
    return replace(step, when=replace(step.when, batch=first_batch + 1))
