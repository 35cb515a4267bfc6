"""Did the pipeline stall, or is it slow? Records outstanding and no progress, beyond what it declares or needed unhurt.

A stretch without a commit is a stall only if it is longer than the declared `interval` allows, or than a control run
without faults needed. A program that dies by itself is the faults' victim only if it lives without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.judge.control import SLOWER, Control, Decided
from harness.judge.folder import Run
from harness.judge.strikes import Strike
from harness.scenario import Finding, Kind

GAVE_UP = "gave up"


def stalled(run: Run, strikes: Sequence[Strike], controls: Sequence[Control]) -> Decided:
    """What the run's outcome says of a stall, held against the declared interval and the controls."""
    said = run.outcome.get("stalled")
    if not said:
        return Decided()
    words = str(said.get("words", "")) if isinstance(said, dict) else str(said)
    dead = isinstance(said, dict) and said.get("kind") == GAVE_UP
    idle_s = _number(said, "idle_s")
    finding = Finding(kind=Kind.STALLED, sink="", position=-1, note=words)
    blamed = replace(finding, faults=tuple(strike.label for strike in strikes[-1:]))
    interval = run.scenario.pipeline.interval_s
    if interval is not None and not dead:
        if idle_s > SLOWER * interval:
            return Decided(stand=[blamed])
        return Decided(unknown=[f"{words}; that is no stall for an interval of {interval:g} s"])
    if not controls:
        why = "no control run shows how long it takes unhurt: name `pipeline.interval`, or run it again"
        return Decided(unknown=[f"{words}; {why}"], wants=1)
    first = controls[0]
    if first.error:
        return Decided(error=[f"the pipeline does not work without faults either: {first.error}"])
    if first.open:
        return Decided(unknown=[f"{words}; a control run without faults did not get done either"])
    if not dead and idle_s <= SLOWER * first.gap_s:
        return Decided(unknown=[f"{words}; unhurt it went {first.gap_s:g} s without a commit"])
    return Decided(stand=[blamed])


def _number(said: object, name: str) -> float:
    value = said.get(name) if isinstance(said, dict) else None
    return float(value) if isinstance(value, (int, float)) else 0.0
