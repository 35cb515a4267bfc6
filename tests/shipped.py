"""The scenarios that are here, each read once by a process of the tests, and not before a test wants them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from harness.load import load
from harness.scenario import Scenario

FILES = sorted((Path(__file__).parents[1] / "scenarios").glob("*/*.yaml"))


@cache
def scenario(path: Path) -> Scenario:
    """One of them."""
    return load(path)


@cache
def scenarios() -> tuple[Scenario, ...]:
    """All of them."""
    return tuple(map(scenario, FILES))
