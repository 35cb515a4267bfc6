"""Did the pipeline stall, or is it slow? Records outstanding and no progress, beyond what it declares or needed unhurt.

A stretch without a commit is a stall only if it is longer than the declared `interval` allows, or than a control run
without faults needed. A program that dies by itself is the faults' victim only if it lives without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.judge.control import CONTROLS_MAX, SLOWER, Control, Decided
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
    declared = interval is not None and not dead
    if interval is not None and declared and idle_s <= SLOWER * interval:
        return Decided(unknown=[f"{words}; that is no stall for an interval of {interval:g} s"])
    failed = [control for control in controls if control.error]
    if failed and len(failed) == len(controls):
        return Decided(error=[f"the pipeline does not work without faults either: {failed[0].error}"])
    if failed:
        often = f"without faults it failed in {len(failed)} of {len(controls)} control runs too"
        return Decided(unknown=[f"{words}; {often}: {failed[0].error}"])
    # Whoever dies may do so now and then, hurt or not.
    asked = CONTROLS_MAX if dead else 1
    if declared and not controls:
        return Decided(stand=[finding], wants=1)
    if len(controls) < asked:
        why = "no control run shows how long it takes unhurt: name `pipeline.interval`, or run it again"
        made = f"only {len(controls)} of {asked} control runs were made" if controls else why
        return Decided(unknown=[f"{words}; {made}"], wants=len(controls) + 1)
    if any(control.open for control in controls[:asked]):
        return Decided(unknown=[f"{words}; a control run without faults did not get done either"])
    if not (dead or declared) and idle_s <= SLOWER * controls[0].gap_s:
        return Decided(unknown=[f"{words}; unhurt it went {controls[0].gap_s:g} s without a commit"])
    return Decided(stand=[blamed])


def _number(said: object, name: str) -> float:
    value = said.get(name) if isinstance(said, dict) else None
    return float(value) if isinstance(value, (int, float)) else 0.0
