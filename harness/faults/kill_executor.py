"""The fault `kill executor`: SIGKILL to an executor at work, or to all; the driver lives and runs its tasks again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from harness.context import Reached, RunContext
from harness.errors import WaitError
from harness.faults.base import Injection, Proof, killing
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.hosts import signals
from harness.kinds import About, Refusal, Refusals
from harness.scenario import CrashPoint, Fault, Impact, Step, Trigger
from harness.stack import Means, Process
from harness.triggers.base import Planned
from harness.wait import until

REPORTED_WITHIN_S = 10.0
LOST_TASK = re.compile(rb"Lost task .*ExecutorLostFailure")
IDLE = "the driver's log names no task that was lost: the executor may have had none. Kill it at `rows` instead"
ALONE = (
    CrashPoint.BATCH_PLANNING,
    CrashPoint.SINK_COMMITTING,
    CrashPoint.SINK_COMMITTED,
    CrashPoint.BATCH_COMMITTED,
)
"""The crash points at which the driver works alone."""


class Which(StrEnum):
    """How many executors die."""

    ONE = "one"
    ALL = "all"


class Picks(Shape):
    """Which executors die."""

    which: Annotated[Which, v.choice(Which)] = Which.ONE


class KillExecutor:
    """Proved by the task that the driver has lost with it, or by the writer that was held in it. A receiver of DStreams
    is a task too, and begins again on another executor."""

    about = About(
        name="kill executor",
        summary="SIGKILL to one executor at work, or to all of them; the driver lives",
        example="{when: {rows: 40}, do: kill executor}",
        options=Picks,
    )
    impact = Impact.EXECUTOR_KILLED
    needs = frozenset({Means.SIGNAL_EXECUTORS})

    def impact_of(self, options: Mapping[str, Any]) -> Impact:
        """Return that of every query of the driver, if all die."""
        return Impact.EXECUTORS_KILLED if options.get("which") == Which.ALL else self.impact

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """Not at a crash point at which the driver works alone."""
        if trigger is not None and trigger.point in ALONE:
            words = f"at {trigger.point} no executor has anything in flight: kill it at rows"
            yield Refusal(trigger.kind, words, whole=True)

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Kill them, and see them gone; whether they were at work, the driver's log tells afterwards."""
        driver = run.supervisor.driver
        log = driver.log if driver else None
        size = log.stat().st_size if log else 0
        found = run.stack.executors(run.own)
        targets = signals.family(executors(found, reached, every=step.do.options.get("which") == Which.ALL))
        done = killing.kill(run, reached, targets)

        def confirm() -> str:
            return "" if reached.blocked is not None or lost_task(run, log, size) else IDLE

        # A receiver's block goes with its executor before any batch has it.
        received = step.when.point is CrashPoint.BLOCK_RECEIVED
        return replace(done, proof=Proof.BEFORE if received else Proof.IN_PROGRESS, confirm=confirm)


def executors(found: Sequence[Process], reached: Reached, *, every: bool) -> Sequence[Process]:
    """Return one executor or all. Where a writer is held at a row it is the writer's; none if it is the driver that
    writes: then an executor has nothing in flight."""
    client = reached.blocked.client if reached.blocked else None
    owner = signals.owner(found, *client) if client else None
    if client and owner is None:
        return []
    return found if every else [owner or each for each in found[:1]]


def lost_task(run: RunContext, log: Path | None, since: int) -> bool:
    """Return whether the driver's log says, after its first `since` bytes, that a task died with its executor."""
    if log is None:
        return False
    try:
        until(
            "the driver's log to name a lost task",
            lambda: bool(LOST_TASK.search(log.read_bytes()[since:])),
            within_s=REPORTED_WITHIN_S,
            stop=run.stop,
        )
    except WaitError:
        return False
    return True


KIND = KillExecutor()
