"""The scenarios that are here, each read once by a process of the tests, and not before a test wants them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from harness.faults import FAULTS
from harness.load import load
from harness.scenario import Fault, Scenario, Step
from harness.sweep.cells import LATER
from harness.triggers import TRIGGERS

FILES = sorted((Path(__file__).parents[1] / "scenarios").glob("*/*.yaml"))


@cache
def scenario(path: Path) -> Scenario:
    """One of them."""
    return load(path)


@cache
def scenarios() -> tuple[Scenario, ...]:
    """All of them."""
    return tuple(map(scenario, FILES))


def step(name: str) -> Step:
    """The step at a crash point that a sweep names: `kill driver failpoint sent (later batch)`."""
    place = name.removesuffix(f" ({LATER})")
    do = max((kind for kind in FAULTS.all() if place.startswith(f"{kind} ")), key=len)
    place = place.removeprefix(f"{do} ")
    failpoint = place.removeprefix("failpoint ")
    kind, value = ("point", place) if place == failpoint else ("failpoint", failpoint)
    return Step(when=TRIGGERS[kind].trigger(value), do=Fault(kind=do, impact=FAULTS[do].impact))


def alone(path: Path, name: str, *, batch: int | None = 3) -> Scenario:
    """A sweep's scenario with a cell that it names as its schedule."""
    swept, at = scenario(path), step(name)
    schedule = (replace(at, when=replace(at.when, batch=batch)),)
    return replace(swept, crash_points=(), schedule=schedule, verdict=swept.verdict.at[name])


@cache
def cells() -> tuple[Scenario, ...]:
    """All of them, each cell that a sweep names alone, in no certain batch."""
    return tuple(each for path in FILES for each in of_file(path))


def of_file(path: Path) -> list[Scenario]:
    """The scenario of a file, or each cell that its sweep names."""
    found = scenario(path)
    return [alone(path, name, batch=None) for name in found.verdict.at] if found.crash_points else [found]
