"""Requests that are held on their way to the real servers, a driver killed meanwhile, and what that leaves."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.load import load
from harness.run.loop import Result
from harness.scenario import Scenario

SCENARIOS = Path(__file__).parents[1] / "scenarios"
DROPPED = "nothing of it had been sent on, and it was dropped: its driver is dead"
INJECTED = ("s3/checkpoint_append_delete_held", "azure/checkpoint_append_delete_held")


@pytest.mark.stack
@pytest.mark.prove
@pytest.mark.parametrize("name", INJECTED)
def test_what_is_held_is_never_done_and_the_evidence_says_what_is_left(
    name: str, run_scenario: Callable[[Scenario], Result]
) -> None:
    verdict = run_scenario(load(SCENARIOS / f"{name}.yaml")).verdict
    assert verdict.as_expected, (verdict.word, verdict.kinds(), verdict.reasons)
    (step,) = verdict.steps
    assert step.injected and step.evidence.driver_status == -signal.SIGKILL
    note = step.evidence.note.replace(f".{step.batch}.", ".N.")
    note = re.sub(rf"commits/{step.batch}\b", "commits/N", note)
    assert re.search(
        r"the delete request DELETE \S+/checkpoint/commits/\.N\.\S* was held on its way to the store", note
    ), note
    assert DROPPED in note
    assert "left in the checkpoint: commits/.N.*.tmp and commits/N" in note
    assert re.search(r"the copy to \S+/commits/N before it had been answered with status 20[02]", note)
