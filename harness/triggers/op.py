"""The trigger `op`: an operation on a checkpoint is held, before it or after it, by the agent in Spark."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About
from harness.operation import POINTS, Op, Side
from harness.scenario import Trigger
from harness.triggers.base.operation import HoldsOperation, Meant

OPERATIONS = (Op.CREATE, Op.RENAME, Op.DELETE)

Path = Annotated[
    str,
    v.matching(r"(offsets|commits|state(/(?!\.)[A-Za-z0-9_.-]+)*)", "offsets, commits, state, or a path below state"),
]
"""Of the files of a batch."""


class Keys(Shape):
    """Which file of the checkpoint, and where its thread stands."""

    path: Path = Field("commits", description="the file of the checkpoint or the folder that has it")
    when: Annotated[Side, v.choice(Side)] = Field(Side.BEFORE, description="before the operation, or after it")


class OperationTrigger(HoldsOperation):
    """Any operation."""

    about = About(
        name="op",
        summary="an operation by which Spark changes a checkpoint: create (the temporary file), rename (to the file's "
        "name) or delete; Spark's thread is held before it or after it",
        example="{op: rename, path: commits, batch: 3, when: before}",
        options=Annotated[Op, v.choice(OPERATIONS)],
        beside=Keys,
    )

    def trigger(self, value: Op | str, *, batch: int | None = None, query: str | None = None, **keys: Any) -> Trigger:
        """While the operation `value` is held."""
        chosen = {"path": "commits", "when": Side.BEFORE, **keys}
        op, side, path = Op(value), Side(chosen["when"]), str(chosen["path"])
        point = POINTS.get((path.partition("/")[0], op, side))
        place = f"{side} {op} of {path}"
        options = {"path": path, "when": str(side)}
        return Trigger(
            kind=self.about.name, value=str(op), place=place, batch=batch, query=query, point=point, options=options
        )

    def at(self, op: Op, side: Side, log: str, *, query: str | None = None) -> Trigger:
        """Return the trigger on one side of an operation, in no batch yet."""
        return self.trigger(op, query=query, path=log, when=side)

    def meant(self, when: Trigger) -> Meant:
        """Return the operation that is waited for."""
        return Op(str(when.value)), Side(when.options["when"]), str(when.options["path"])


KIND = OperationTrigger()
