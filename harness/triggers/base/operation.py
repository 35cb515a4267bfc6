"""A trigger that holds an operation on a checkpoint, in the driver or in an executor, by the agent in Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod

from harness.context import HeldOperation, Listing, Reached, RunContext, running
from harness.errors import WaitError
from harness.kinds import About, Refusal, Refusals
from harness.operation import Op, Operation, Side
from harness.scenario import Step, Trigger
from harness.spark.settings import MANAGER
from harness.stack import Means
from harness.triggers.base import WATCHED, Planned, wait_until
from harness.triggers.base.standing import first

NUMBERED = ("offsets", "commits")
THERE = {(Op.RENAME, Side.AFTER), (Op.DELETE, Side.BEFORE)}
"""When the file is there under its name."""
CURE = f"does the program set {MANAGER} itself? Say it in the scenario's `conf`"
Meant = tuple[Op, Side, str]
"""Operation, side, and the path in the checkpoint that the file has or lies below."""


class HoldsOperation(ABC):
    """The first such operation of a batch with records."""

    about: About
    needs = frozenset({Means.HOLD_OPERATIONS})

    @abstractmethod
    def meant(self, when: Trigger) -> Meant:
        """Return the operation that is waited for."""

    def refusals(self, trigger: Trigger, planned: Planned) -> Refusals:
        """It needs a batch, and a checkpoint of Spark's micro-batch protocol."""
        if trigger.batch is None:
            yield Refusal("batch", "is missing: of which batch?")
        if not planned.checkpoint or planned.by_time:
            yield Refusal(self.about.name, "never comes: no checkpoint of Structured Streaming is written")

    def wait(self, run: RunContext, step: Step, *, later: int, freeze: bool) -> Reached:
        """The thread is held, so there is time to read the state."""
        when = step.when

        def held(lowest: int) -> Reached:
            found = _held(run, when, self.meant(when), lowest)
            return Reached(found.operation.batch, folder=found.operation.folder, operation=found)

        return first(run, held, (when.batch or 0) + later, freeze=freeze)

    def agrees(self, trigger: Trigger, reached: Reached, listing: Listing) -> bool:
        """By the file that is there after its rename, and not before; by the batch, where it is a file of neither
        log."""
        if reached.operation is None or reached.batch is None:
            return False
        done = reached.operation.operation
        if done.log not in NUMBERED:
            return running(reached.batch, listing) or done.log == "sources"
        return (reached.batch in listing.get(done.log, ())) is ((done.op, done.side) in THERE)


def _held(run: RunContext, when: Trigger, meant: Meant, lowest: int) -> HeldOperation:
    """Return the first such operation of a batch from `lowest` on. Raises WaitError once none can come."""
    op, side, path = meant

    def wanted(done: Operation) -> bool:
        return (
            (done.op, done.side) == (op, side) and done.below(path) and done.batch is not None and done.batch >= lowest
        )

    def check() -> bool:
        unreported = any(not run.observer.reported(folder) for folder in run.observer.folders(when.query))
        if unreported and held() is None:
            raise WaitError(f"{when} never came: {WATCHED}; {CURE}")
        return held() is not None

    with run.observer.holding(wanted, query=when.query) as held:
        wait_until(run, when, check)
        found = held()
    assert found is not None
    return found
