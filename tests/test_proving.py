"""The proving suite on the stack `processes`: every scenario as it expects.

Where there has to be a container engine, `test_containers.py` runs some of them on both stacks; they are not run twice.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.load import load
from harness.run.loop import Result
from harness.scenario import Scenario
from tests import container_engine

pytestmark = pytest.mark.stack
PROVING = sorted((Path(__file__).parents[1] / "scenarios" / "proving").glob("*.yaml"))
HERE = [path for path in PROVING if not (container_engine.needed() and container_engine.chosen(path))]


@pytest.mark.parametrize("path", HERE, ids=lambda path: path.stem)
def test_a_scenario_is_as_it_expects(path: Path, run_scenario: Callable[[Scenario], Result]) -> None:
    verdict = run_scenario(load(path)).verdict
    assert verdict.as_expected, (verdict.word, verdict.kinds(), verdict.reasons)
