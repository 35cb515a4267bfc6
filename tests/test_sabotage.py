"""A kill that strikes nothing is never held, whatever its evidence says. The whole: `make prove SUITE=sabotage`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.load import load
from harness.run.loop import Result
from harness.scenario import Scenario, Word
from tests import faked

pytestmark = pytest.mark.stack
Run = Callable[[Scenario], Result]
PROVING = Path(__file__).parents[1] / "scenarios" / "proving"


def scenario(name: str) -> Scenario:
    return load(PROVING / f"{name}.yaml")


def test_a_kill_of_nothing_is_untested(run_scenario: Run) -> None:
    with faked.nothing():
        verdict = run_scenario(scenario("append_before_offset_commit")).verdict
    assert verdict.steps[0].injected
    assert (verdict.word, verdict.findings) == (Word.UNTESTED, ())


@pytest.mark.prove
def test_a_kill_of_an_idle_pipeline_is_untested(run_scenario: Run) -> None:
    with faked.idle():
        verdict = run_scenario(scenario("append_before_offset_commit")).verdict
    assert verdict.steps[0].injected
    assert (verdict.word, verdict.exposures) == (Word.UNTESTED, ())


@pytest.mark.prove
def test_a_kill_in_an_empty_batch_is_untested(run_scenario: Run) -> None:
    with faked.empty():
        verdict = run_scenario(faked.in_the_first_batch(scenario("append_before_offset_commit"))).verdict
    assert verdict.steps[0].injected and verdict.steps[0].batch == 0
    assert (verdict.word, verdict.exposures) == (Word.UNTESTED, ())


@pytest.mark.prove
def test_a_kill_in_a_batch_that_puts_nothing_into_the_sink_is_untested(run_scenario: Run) -> None:
    verdict = run_scenario(faked.filtered_out(scenario("append_before_offset_commit"))).verdict
    assert verdict.steps[0].injected
    assert verdict.word is Word.UNTESTED
    assert {exposure.would_show for exposure in verdict.exposures} == {False}
