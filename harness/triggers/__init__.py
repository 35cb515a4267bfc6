"""When to act: a protocol event, not only a clock. One module each; `harness.triggers.base` says what it has."""

from __future__ import annotations

from typing import Any

from harness.context import Reached, RunContext
from harness.kinds import Registry
from harness.scenario import Step, Trigger
from harness.triggers.base import Releases, TriggerKind

__all__ = ["TRIGGERS", "release", "trigger"]

TRIGGERS: Registry[TriggerKind] = Registry("trigger", "harness.triggers", TriggerKind)


def trigger(kind: str, value: Any, *, batch: int | None = None, query: str | None = None, **keys: Any) -> Trigger:
    """Return a trigger in code, as `{kind: value, batch: ..., query: ...}` is in a file; a time in seconds."""
    return TRIGGERS[kind].trigger(value, batch=batch, query=query, **keys)


def release(run: RunContext, step: Step, reached: Reached) -> None:
    """Undo what a step's trigger held: frozen processes, the sink's writer, what its kind leaves behind."""
    run.release(reached)
    kind = TRIGGERS[step.when.kind]
    if isinstance(kind, Releases):
        kind.release(run, step.when)
