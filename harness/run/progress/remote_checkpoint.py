"""A checkpoint that a component keeps: its local copy, and the requests by which it is committed."""

from __future__ import annotations

from harness.component import KeepsCheckpoints, ShowsCommits, able, component
from harness.remote.mirror import Mirror
from harness.remote.proxy.commits import Commits
from harness.resources import RunResources
from harness.scenario import Scenario
from harness.triggers import TRIGGERS
from harness.triggers.base import Trait, has


def mirror(scenario: Scenario, own: RunResources) -> Mirror | None:
    """Return the local copy; None for a checkpoint in the run's own folder."""
    label = scenario.pipeline.checkpoint
    if not label:
        return None
    kept: KeepsCheckpoints = able(label, KeepsCheckpoints, "keeps no checkpoints")
    return Mirror(kept.checkpoints(own.part(label)), own.checkpoint, scratch=own.folder / "copied")


def requests(scenario: Scenario, own: RunResources) -> Commits | None:
    """Return what holds the requests; None where no step asks for that."""
    label = scenario.pipeline.checkpoint
    if not label or not any(has(TRIGGERS[step.when.kind], Trait.HOLDS_REQUESTS) for step in scenario.schedule):
        return None
    kept = component(label)
    return kept.commits(own.part(label)) if isinstance(kept, ShowsCommits) else None
