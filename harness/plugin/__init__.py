"""The pytest plugin: scenario files are tests, and any test may run a scenario.

    pytest scenarios/                              every scenario, one test a file, on one stack
    pytest scenarios/append.yaml --harness-seed 7
    def test_mine(run_scenario):                   in a test of your own
        assert run_scenario("scenarios/append.yaml").verdict.word == "held"

Which YAML files are scenarios: harness/plugin/files.py. It loads into every pytest run where Onceproof is
installed; so nothing but pytest and a few small modules is imported until there is a scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.plugin import files, runs, settings
from harness.plugin.suite import SUITE, Suite, quiet, short

if TYPE_CHECKING:
    from harness.run.loop import Result
    from harness.scenario import Scenario
    from harness.stack import Stack


def pytest_addoption(parser: pytest.Parser) -> None:
    settings.add(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "stack: starts real servers")
    config.stash[SUITE] = Suite(config, settings.read(config))
    config.pluginmanager.register(config.stash[SUITE], "onceproof-suite")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    # Those of harness/fields/paths.py, which is more than every pytest run has to import.
    if file_path.suffix not in {".yaml", ".yml"}:
        return None
    return files.collect(file_path, parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.config.stash[SUITE].hand_over(report)
    return runs.completed(item, call, report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if isinstance(collector, files.ScenarioFile) and collector.mistakes:
        # Plain data, so that it also travels from a worker of pytest-xdist.
        report.onceproof_mistakes = collector.mistakes  # type: ignore[attr-defined]
    return report


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[Stack]:
    """Real servers, brought up once for all tests that ask. Override it to bring your own."""
    with quiet():
        from harness.suite import only_suite
        from harness.suite.options import Options
        from harness.suite.side_by_side import struck_components
        from harness.suite.suite_stack import stack_of, up

    suite = pytestconfig.stash[SUITE]
    chosen = suite.settings
    # Workers of pytest-xdist share the reports folder, and each has its own stack; only their controller writes.
    alone = nullcontext() if hasattr(pytestconfig, "workerinput") else only_suite(chosen.reports)
    options = Options(
        stack=chosen.stack, where=settings.cluster(chosen), reports=chosen.reports, own_stack=chosen.own_stack
    )
    work = [item.scenario for item in request.session.items if isinstance(item, files.ScenarioItem)]
    with alone, up(stack_of(options, struck=struck_components(work), notify=suite.notify), suite.notify) as opened:
        yield opened


@pytest.fixture
def onceproof_sweep(request: pytest.FixtureRequest, stack: Stack) -> Callable[[Scenario], None]:
    """Return a function that sweeps the pipeline of a scenario, each cell a subtest."""
    from harness.plugin.sweeps import prove

    return partial(prove, request, stack)


@pytest.fixture
def run_scenario(request: pytest.FixtureRequest, stack: Stack) -> Callable[..., Result]:
    """Return a function: `run_scenario(file or Scenario, seed=None)` runs it on `stack` and gives the result, which has
    `verdict` and `folder`. It does not fail the test: assert on the verdict. A file's path counts from the root."""

    def run_scenario(scenario: Scenario | Path | str, *, seed: int | None = None) -> Result:
        __tracebackhide__ = True
        from harness.load import load

        root = request.config.rootpath
        chosen = load(short(root / scenario)) if isinstance(scenario, (str, Path)) else scenario
        return runs.run(request.node, stack, chosen, seed=seed)

    return run_scenario
