"""Carries out the schedule: waits for each step's trigger, does its fault, and keeps the proof.

Steps go in order, one armed at a time. A watched folder may tell of a crash point once it is over, and a held request
may go on by itself. Then the victim goes on and the step tries the next batch, `TRIES` times in all; the outcome says
which batch it was in the end.
"""

from __future__ import annotations

import threading
import traceback
from dataclasses import replace
from time import monotonic

from harness.context import Reached, RunContext
from harness.errors import HarnessError, WaitError
from harness.faults import FAULTS
from harness.faults.base.killing import victim_of
from harness.history import FaultInjected, FaultMissed
from harness.run.schedule.evidence import performed
from harness.scenario import Evidence, Step, StepOutcome, Victim
from harness.triggers import TRIGGERS

TRIES = 8
"""A crash point is some 40 ms wide. On a machine that runs more than it has cores for, three in a row were missed."""
END_WITHIN_S = 30.0


class Schedule:
    """Runs the steps in a separate thread."""

    def __init__(self, steps: tuple[Step, ...], run: RunContext) -> None:
        self._steps = steps
        self._run = run
        self.outcomes: list[StepOutcome] = []
        self.failure: BaseException | None = None
        self._at = "the first step"
        self._acted = threading.Event()
        self._injecting = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name="schedule", daemon=True)

    def start(self) -> None:
        """Arm the first step."""
        self._run = replace(self._run, began_s=monotonic())
        self._thread.start()

    @property
    def done(self) -> bool:
        """True once each step has an outcome."""
        return len(self.outcomes) == len(self._steps)

    @property
    def acted(self) -> bool:
        """True once the first fault has begun."""
        return self._acted.is_set()

    @property
    def injecting(self) -> bool:
        """True while a fault is being done: code that need not ask the stack now waits."""
        return self._injecting.is_set()

    def stop(self) -> None:
        """Give up what has not fired; returns when the thread is gone."""
        self._run.stop.set()
        if self._thread.is_alive():
            self._thread.join(END_WITHIN_S)

    def healthy(self) -> None:
        """Raise HarnessError if the schedule itself failed."""
        if self.failure is not None:
            raise HarnessError(f"{self._at} of the schedule failed: {_described(self.failure)}") from self.failure

    def _guarded(self) -> None:
        try:
            for number, step in enumerate(self._steps, 1):
                self._at = f"step {number} (`{step.name}`)"
                outcome = self._perform(number, step)
                self.outcomes.append(outcome)
                # A run that is torn down has not missed what it did not wait for.
                if outcome.injected or not self._run.stop.is_set():
                    self._run.history.write(FaultInjected(outcome=outcome))
        except BaseException as failure:
            self.failure = failure

    def _perform(self, number: int, step: Step) -> StepOutcome:
        when = step.when
        outcome = missed = StepOutcome(
            name=step.name, point=when.place, crash_point=when.point, batch=when.batch, injected=False
        )
        for later in range(TRIES):
            try:
                reached = self._wait(step, later)
            except WaitError as never:
                return replace(missed, evidence=Evidence(note=str(never)))
            self._acted.set()
            reached.step = number
            self._injecting.set()
            outcome = performed(self._run, step, reached)
            self._injecting.clear()
            if outcome.injected or outcome.evidence.signalled or not reached.late:
                break
            self._run.history.write(FaultMissed(outcome=outcome))
        return outcome

    def _wait(self, step: Step, later: int) -> Reached:
        """Return when the trigger is met. Raises WaitError with the reason once it can no longer be."""
        kind = FAULTS[step.do.kind]
        # A program that dies alone leaves its JVM to go on.
        freeze = getattr(kind, "freezes", False) and victim_of(step.do) is not Victim.PYTHON
        reached = TRIGGERS[step.when.kind].wait(self._run, step, later=later, freeze=freeze)
        current = self._run.observer.current()
        # Of several queries at once it is not known whose batch it was.
        if reached.batch is None and len(current) == 1 and current[0].ends:
            reached.batch = max(current[0].ends)
        return reached


def _described(failure: BaseException) -> str:
    """Return an error of the harness in its words, and any other error, such as one of a plugin's kind, with its
    line."""
    frames = traceback.extract_tb(failure.__traceback__)
    if isinstance(failure, HarnessError) or not frames:
        return str(failure) or repr(failure)
    return f"{failure!r} in {frames[-1].filename}:{frames[-1].lineno}"
