"""Pipelines that are expected to break: after how many plans a night found that they do."""

from __future__ import annotations

from dataclasses import dataclass

from harness.report.escape import plural, visible

NAME = 160


@dataclass(frozen=True, kw_only=True)
class Hunted:
    """One pipeline. `plan` is the one that found it, empty if none did; `own` counts its plans until then, `every`
    those of all pipelines. Runs again of a plan are not counted."""

    pipeline: str
    plan: str
    own: int
    every: int

    def __str__(self) -> str:
        name = visible(self.pipeline, NAME)
        if not self.plan:
            return f"{name}: not found in {plural(self.own, 'plan')} for it, {self.every:,} in all"
        return f"{name}: found by plan {self.plan}, after {plural(self.own, 'plan')} for it, {self.every:,} in all"
