"""The strategies for users' own property tests: what they draw can be loaded, and a failure shrinks to little."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from harness import strategies
from harness.errors import UsageError
from harness.load import dump, load
from harness.nightly.possible import place
from harness.scenario import Scenario
from harness.strategies import inputs, scenarios, schedules
from tests.limits import examples
from tests.test_plugin import World, project, run, world

pytest_plugins = ["pytester"]
__all__ = ["project", "world"]
HOUSE = Path(__file__).parents[1]
UPSERT = HOUSE / "scenarios" / "proving" / "upsert_before_offset_commit.yaml"
GROUP = HOUSE / "scenarios" / "proving" / "group_upsert_in_offset_commit.yaml"
PATIENT = settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@PATIENT
@given(scenario=st.one_of(schedules(UPSERT), inputs(UPSERT), scenarios(UPSERT), scenarios(GROUP)))
def test_what_is_drawn_is_a_scenario_of_that_pipeline(tmp_path: Path, scenario: Scenario) -> None:
    own = load(Path(scenario.path))
    assert scenario.pipeline == own.pipeline
    assert 1 <= len(scenario.schedule) <= 3
    # Not beside ours, which other tests list meanwhile.
    copy, programs = tmp_path / "scenarios" / "drawn.yaml", Path("pipelines") / "transactions"
    copy.parent.mkdir(exist_ok=True)
    if not (tmp_path / programs).exists():
        shutil.copytree(HOUSE / programs, tmp_path / programs)
    copy.write_text(dump(scenario), encoding="utf-8")
    assert replace(load(copy), path="") == replace(scenario, path="")


@PATIENT
@given(drawn=schedules(UPSERT), sent=inputs(UPSERT))
def test_each_strategy_leaves_the_rest_as_it_is(drawn: Scenario, sent: Scenario) -> None:
    own = load(UPSERT)
    assert (drawn.input, drawn.verdict) == (own.input, own.verdict)
    assert replace(sent, input=own.input) == own


def test_what_fails_shrinks_to_one_early_step_and_few_records() -> None:
    def fails(scenario: Scenario) -> bool:
        return any(place(step.when) == "sink-committed" for step in scenario.schedule)

    smallest = find(scenarios(UPSERT), fails, settings=settings(max_examples=500, derandomize=True, database=None))
    (step,) = smallest.schedule
    assert step.when.batch == 1
    assert smallest.input.records == min(300, load(UPSERT).input.records // 2)
    assert smallest.input.rate_per_s is not None or smallest.input.options.get("skew", 0) == 0


def test_what_cannot_be_drawn_is_said_when_the_strategy_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="asked for the stack 'nothing'"):
        schedules(UPSERT, stack="nothing")
    monkeypatch.setattr(strategies, "targets", lambda found, means: [])
    with pytest.raises(UsageError, match=r"asked for schedules of .*no step that the stack processes could play"):
        schedules(UPSERT)


@pytest.mark.parametrize("broken", [False, True])
def test_a_property_test_runs_prints_the_smallest_and_passes(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World, broken: bool
) -> None:
    project("scenarios/orders.yaml")
    pytester.makepyfile(
        f"""
        from hypothesis import assume, given, settings
        from harness.strategies import REAL, schedules

        @settings(REAL, max_examples=5, derandomize=True, database=None)
        @given(scenario=schedules("scenarios/orders.yaml"))
        def test_orders(run_scenario, scenario):
            verdict = run_scenario(scenario).verdict
            assume(verdict.word != "untested")
            assert not {broken}
        """
    )
    result = run(pytester, "test_a_property_test_runs_prints_the_smallest_and_passes.py")
    result.assert_outcomes(failed=int(broken), passed=int(not broken))
    assert world.ups == 1
    if broken:
        result.stdout.fnmatch_lines(["*schedule:", "*- {when: *, do: *}*"])
    else:
        assert 1 <= len(world.asked) <= 10
