"""The trigger `op`: an operation on a checkpoint is held, before it or after it, by the agent in Spark."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from harness.context import HeldOperation, Listing, RunContext, TriggerHit, running
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusal, Refusals
from harness.operation import POINTS, Op, Operation, Side
from harness.scenario import Step, Trigger
from harness.stack import Means
from harness.triggers.base import Planned, wait_until
from harness.triggers.base.standing import first

ASKED = (Op.CREATE, Op.RENAME, Op.DELETE)
NUMBERED = ("offsets", "commits")
THERE = {(Op.RENAME, Side.AFTER), (Op.DELETE, Side.BEFORE)}
"""When the file is there under its name."""


Path = Annotated[str, v.matching(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)*", "a path in the checkpoint")]


class Keys(Shape):
    """Which file of the checkpoint, and where its thread stands."""

    path: Path = Field("commits", description="the file of the checkpoint or the folder that has it")
    when: Annotated[Side, v.choice(Side)] = Field(Side.BEFORE, description="before the operation, or after it")


class OperationTrigger:
    """The first such operation of a batch with records, in the driver or in an executor."""

    about = About(
        name="op",
        summary="an operation by which Spark changes a checkpoint: create (the temporary file), rename (to the file's "
        "name) or delete; Spark's thread is held before it or after it",
        example="{op: rename, path: commits, batch: 3, when: before}",
        options=Annotated[Op, v.choice(ASKED)],
        beside=Keys,
    )
    needs = frozenset({Means.HOLD_OPERATIONS})

    def trigger(self, value: Op | str, *, batch: int | None = None, query: str | None = None, **keys: Any) -> Trigger:
        """While the operation `value` is held."""
        said = {"path": "commits", "when": Side.BEFORE, **keys}
        op, side, path = Op(value), Side(said["when"]), str(said["path"])
        point = POINTS.get((path.partition("/")[0], op, side))
        place = f"{side} {op} of {path}"
        options = {"path": path, "when": str(side)}
        return Trigger(
            kind=self.about.name, value=str(op), place=place, batch=batch, query=query, point=point, options=options
        )

    def refusals(self, trigger: Trigger, planned: Planned) -> Refusals:
        """It needs a batch, and a checkpoint of Spark's micro-batch protocol."""
        if trigger.batch is None:
            yield Refusal("batch", "is missing: of which batch?")
        if not planned.checkpoint or planned.by_time:
            yield Refusal(self.about.name, "never comes: no checkpoint of Structured Streaming is written")

    def wait(self, run: RunContext, step: Step, *, later: int, freeze: bool) -> TriggerHit:
        """The thread is held, so there is time to look."""
        when = step.when

        def held(lowest: int) -> TriggerHit:
            found = _held(run, when, lowest)
            return TriggerHit(found.operation.batch, folder=found.operation.folder, operation=found)

        return first(run, held, (when.batch or 0) + later, freeze=freeze)

    def agrees(self, trigger: Trigger, hit: TriggerHit, listing: Listing) -> bool:
        """By the file that is there after its rename, and not before; by the batch, where it is a file of neither
        log."""
        if hit.operation is None or hit.batch is None:
            return False
        done = hit.operation.operation
        if done.log not in NUMBERED:
            return running(hit.batch, listing) or done.log == "sources"
        return (hit.batch in listing.get(done.log, ())) is ((done.op, done.side) in THERE)


def _held(run: RunContext, when: Trigger, lowest: int) -> HeldOperation:
    """The first such operation of a batch from `lowest` on. Raises WaitError once none can come."""
    path, side = when.options["path"], when.options["when"]

    def wanted(done: Operation) -> bool:
        return (
            (done.op, done.side) == (when.value, side)
            and done.below(path)
            and done.batch is not None
            and done.batch >= lowest
        )

    with run.observer.holding(wanted, query=when.query) as held:
        wait_until(run, when, lambda: held() is not None)
        found = held()
    assert found is not None
    return found


KIND = OperationTrigger()
