"""Strategies for Hypothesis: property tests of a pipeline of one's own.

    @REAL
    @given(schedules("scenarios/orders.yaml"))
    def test_orders(run_scenario, scenario):
        verdict = run_scenario(scenario).verdict
        assume(verdict.word != "untested")
        assert verdict.word != "violated"

Each example is a run on real servers, so that a test has few of them. Hypothesis shrinks what fails for five minutes at
most: fewer steps, an earlier batch, fewer records. It prints the scenario as a file, and keeps the example in its
database, from which the next session begins. A path counts from the current folder.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from harness.component import no_package
from harness.errors import UsageError
from harness.load import dump, load
from harness.nightly.draw import given, scheduled, targets
from harness.nightly.possible import Target
from harness.scenario import Scenario
from harness.stack import Means
from harness.stacks import DEFAULT
from harness.stacks.registry import STACKS

try:
    from hypothesis import HealthCheck, note, settings
    from hypothesis import strategies as st
except ModuleNotFoundError as missing:
    raise UsageError(no_package("harness.strategies", missing.name, "hypothesis")) from None

EXAMPLES = 10
REAL = settings(
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
    ],
)
"""Settings for examples that are runs: few of them, with no limit on how long one takes."""


def schedules(file: Path | str, *, stack: str = DEFAULT) -> st.SearchStrategy[Scenario]:
    """Return a strategy for the scenario in `file` with a schedule of one to three steps: crash points and faults that
    its pipeline admits on that stack. Raises UsageError where there are none, ScenarioError for mistakes."""
    target, means = _target(file, stack)
    return _random().map(lambda random: _noted(scheduled(random, target, target.base, means)))


def inputs(file: Path | str) -> st.SearchStrategy[Scenario]:
    """Return a strategy for the scenario in `file`, its schedule as it is, with another input: how many records, how
    skewed, how fast. Raises UsageError where there is no schedule, ScenarioError."""
    scenario = load(Path(file))
    if not scenario.schedule:
        raise UsageError(
            f"asked for inputs of {file}; it has no schedule, so that nothing would be tested. Take scenarios()"
        )
    return _random().map(lambda random: _noted(_sent(random, scenario)))


def scenarios(file: Path | str, *, stack: str = DEFAULT) -> st.SearchStrategy[Scenario]:
    """Return a strategy that draws both, input and schedule. Raises as `schedules`."""
    target, means = _target(file, stack)
    return _random().map(lambda random: _noted(scheduled(random, target, _sent(random, target.base), means)))


def _random() -> st.SearchStrategy[Random]:
    """Return choices of which Hypothesis knows each, so that it can shrink them."""
    return st.randoms(use_true_random=False)


def _target(file: Path | str, stack: str) -> tuple[Target, frozenset[Means]]:
    means = frozenset(STACKS[stack].means)
    found = targets([load(Path(file))], means)
    if not found:
        raise UsageError(f"asked for schedules of {file}; there is no step that the stack {stack} could play for it")
    return found[0], means


def _sent(random: Random, scenario: Scenario) -> Scenario:
    return replace(scenario, input=given(random, scenario))


def _noted(scenario: Scenario) -> Scenario:
    """Note the scenario for Hypothesis, which prints it for the smallest example that fails, and return it."""
    plain = replace(scenario, crash_points=(), verdict=replace(scenario.verdict, at={}))
    note(dump(plain))
    return plain
