"""How often YARN starts a driver: its own policy, in place of a scenario's `restart`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.component import NeedsComponents
from harness.faults import FAULTS
from harness.scenario import Impact, Pipeline, Restart, Scenario, Step, Victim
from harness.triggers import TRIGGERS
from harness.triggers.base import Trait, has

ATTEMPTS = "spark.yarn.maxAppAttempts"
VALIDITY = "spark.yarn.am.attemptFailuresValidityInterval"
MOST = 1 + Restart.max_restarts
"""The first attempt, and as many restarts as on any other stack."""
ENDS = (Impact.DRIVER_KILLED, Impact.DRIVER_STOPPED)
LOSES = "kill nodemanager"
"""The fault after which YARN takes an attempt for lost."""
LARGEST = 2**31 - 1
"""Spark reads the number as one of Java's `int`."""
DURATION = re.compile(r"([0-9]{1,18})(us|ms|s|m|min|h|d|)")
"""Spark's way to write a time; without a unit this setting is in milliseconds."""
UNITS_S = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
SHOWN = 40


def attempts(pipeline: Pipeline) -> int | None:
    """Return how many attempts YARN gives it: as its own `conf` says; None where that is no such number."""
    text = pipeline.conf.get(ATTEMPTS, str(MOST)).strip()
    # Python reads no number of thousands of digits.
    digits = text.lstrip("0") if text.isascii() and text.isdigit() else ""
    return int(digits) if 0 < len(digits) <= len(str(LARGEST)) and int(digits) <= LARGEST else None


def unsupported(scenario: Scenario) -> Iterator[str]:
    """Yield what a scenario asks for and YARN does otherwise, each in words that stand after `asked for`."""
    given, usual = scenario.restart, Restart()
    for key, differs in (
        ("after", given.delay_s != usual.delay_s),
        ("max_restarts", given.max_restarts != usual.max_restarts),
    ):
        if differs:
            yield f"restart.{key}"
    most = attempts(scenario.pipeline)
    if most is None:
        text = _short(scenario.pipeline.conf[ATTEMPTS])
        yield f"{ATTEMPTS}: {text}, which is no whole number from 1 to {LARGEST}"
    elif used := _used_up(scenario, most):
        yield used


def _used_up(scenario: Scenario, most: int) -> str:
    """Return words for a schedule that uses up the attempts, empty for another one. Each end counts, the schedule's
    too, unless YARN forgets those that are old; an attempt that is lost with its node does not, whatever comes of
    it."""
    ends = [step for step in scenario.schedule if _ends(step, scenario.pipeline.checkpoint)]
    alone = max(_alone(scenario), default=0)
    if len(ends) >= most and not _forgotten(scenario, ends, most):
        validity = scenario.pipeline.conf.get(VALIDITY)
        named = f" and {VALIDITY}: {_short(validity)}" if validity is not None else ""
        steps = "one step that ends" if len(ends) == 1 else f"{len(ends)} steps that end"
        why, needed = f"{steps} the driver, with {ATTEMPTS}: {most}{named}: none is left", max(len(ends), alone) + 1
    elif alone >= most:
        fails = "its ApplicationMaster says there that the application has failed"
        why, needed = f"victim: python in attempt {alone}, with {ATTEMPTS}: {most}: {fails}", alone + 1
    else:
        return ""
    return f"{why}; raise {ATTEMPTS} to {needed}"


def _ends(step: Step, kept: str) -> bool:
    """Return whether a driver ends by it, or one may end whose checkpoint is in the component `kept`, which is away
    then."""
    does = FAULTS[step.do.kind]
    return step.do.impact in ENDS or (isinstance(does, NeedsComponents) and kept in does.components)


def _alone(scenario: Scenario) -> Iterator[int]:
    """Yield the numbers of the attempts in which a program is killed under a JVM that lives: from the last one on, by
    number, that JVM has the application fail. An attempt that is lost with its node has a number, and is not counted as
    failed."""
    number = 1
    for step in scenario.schedule:
        if step.do.options.get("victim") == Victim.PYTHON:
            yield number
        number += _ends(step, scenario.pipeline.checkpoint) or step.do.kind == LOSES


def _forgotten(scenario: Scenario, ends: Sequence[Step], most: int) -> bool:
    """Return whether no `most` ends in a row count together. By what is known, the first is too old when the last one
    comes."""
    within_s = validity_s(scenario.pipeline)
    # Who may have one attempt only is never started again.
    if not within_s or most == 1:
        return False
    return all(
        within_s < _latest_s(last, scenario) - _earliest_s(first)
        for first, last in zip(ends, ends[most - 1 :], strict=False)
    )


def validity_s(pipeline: Pipeline) -> float:
    """After how many seconds YARN forgets an end; 0 where it never does, or that cannot be read."""
    found = DURATION.fullmatch(pipeline.conf.get(VALIDITY, "").strip().lower())
    held_s = int(found[1]) * UNITS_S[found[2]] if found else 0.0
    # YARN counts whole milliseconds.
    return held_s if held_s >= UNITS_S["ms"] else 0.0


def _earliest_s(step: Step) -> float:
    """When it comes at the earliest, in seconds after the schedule has begun."""
    return float(step.when.value or 0) if _timed(step) else 0.0


def _latest_s(step: Step, scenario: Scenario) -> float:
    """And at the latest, if nothing is late: before the run's time is up."""
    return float(step.when.value or 0) if _timed(step) else scenario.timeout_s


def _timed(step: Step) -> bool:
    return has(TRIGGERS[step.when.kind], Trait.TIMED)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
