"""The trigger `state_store`: a task has committed a batch's version of its state store, and nothing of the sink."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About
from harness.operation import Op, Side
from harness.scenario import Trigger
from harness.triggers.base.operation import HoldsOperation, Meant


class Stage(StrEnum):
    """How far a task has come with its state store."""

    COMMITTED = "committed"


class StateStore(HoldsOperation):
    """The first task of the batch whose state file is renamed: the others may still run."""

    about = About(
        name="state_store",
        summary="a task of a stateful query has committed its state store for the batch, and is held there",
        example="{state_store: committed, batch: 3}",
        options=Annotated[Stage, v.choice(Stage)],
        beside=Shape,
    )

    def trigger(
        self, value: Stage | str, *, batch: int | None = None, query: str | None = None, **keys: Any
    ) -> Trigger:
        """Once the file has its name."""
        stage = str(Stage(value))
        return Trigger(kind=self.about.name, value=stage, place=f"state store {stage}", batch=batch, query=query)

    def meant(self, when: Trigger) -> Meant:
        """Return the rename of the state's file, however the store names it."""
        return Op.RENAME, Side.AFTER, "state"


KIND = StateStore()
