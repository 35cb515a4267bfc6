"""Carries out the schedule: waits for each step's trigger, does its fault, and keeps the proof.

Steps go in order, one armed at a time. A step whose window had closed before anyone was hurt lets its victim go on
and tries the next batch, `TRIES` times in all; the outcome says which batch it was in the end.
"""

from __future__ import annotations

import threading

from harness.errors import HarnessError, WaitError
from harness.run.aim import Aim
from harness.run.scene import Scene
from harness.run.strike import strike
from harness.scenario import Evidence, Step, StepOutcome, When, plain

TRIES = 3
END_WITHIN_S = 30.0


class Schedule:
    """Runs the steps in a thread of its own."""

    def __init__(self, steps: tuple[Step, ...], scene: Scene) -> None:
        self._steps = steps
        self._scene = scene
        self._aim = Aim(scene)
        self.outcomes: list[StepOutcome] = []
        self.failure: BaseException | None = None
        self._acted = threading.Event()
        self._striking = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name="schedule", daemon=True)

    def start(self) -> None:
        """Arm the first step."""
        self._aim.begin()
        self._thread.start()

    @property
    def done(self) -> bool:
        """True once each step has an outcome."""
        return len(self.outcomes) == len(self._steps)

    @property
    def acted(self) -> bool:
        """True from the moment at which the first fault begins."""
        return self._acted.is_set()

    @property
    def striking(self) -> bool:
        """True while a fault is being done: whoever need not ask the stack now lets it be."""
        return self._striking.is_set()

    def stop(self) -> None:
        """Give up what has not fired; returns when the thread is gone."""
        self._scene.stop.set()
        if self._thread.is_alive():
            self._thread.join(END_WITHIN_S)

    def healthy(self) -> None:
        """Raise HarnessError if the schedule itself failed."""
        if self.failure is not None:
            raise HarnessError(f"the schedule failed: {self.failure!r}") from self.failure

    def _guarded(self) -> None:
        try:
            for number, step in enumerate(self._steps, 1):
                outcome = self._perform(number, step)
                self.outcomes.append(outcome)
                # A run that is torn down has not missed what it did not wait for.
                if outcome.hit or not self._scene.stop.is_set():
                    self._tell("step", outcome)
        except BaseException as failure:
            self.failure = failure

    def _perform(self, number: int, step: Step) -> StepOutcome:
        outcome = StepOutcome(name=step.name, window=step.when.place, batch=step.when.batch, hit=False)
        for slip in range(TRIES):
            try:
                moment = self._aim.wait(step, slip=slip)
            except WaitError as never:
                return StepOutcome(
                    name=step.name,
                    window=step.when.place,
                    batch=step.when.batch,
                    hit=False,
                    evidence=Evidence(note=str(never)),
                )
            self._acted.set()
            moment.step = number
            self._striking.set()
            outcome = strike(self._scene, step, moment)
            self._striking.clear()
            if outcome.hit or outcome.evidence.signalled or step.when.kind is not When.WINDOW:
                break
            self._tell("missed", outcome)
        return outcome

    def _tell(self, what: str, outcome: StepOutcome) -> None:
        fields = {name: value for name, value in plain(outcome).items() if name != "at_s"}
        self._scene.journal.write(what, **fields)
