"""Runs one scenario for a test, and puts what came of it on the test's report."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import HarnessError, UsageError
from harness.plugin.suite import SUITE, own_text, quiet, short

if TYPE_CHECKING:
    from harness.report.summary import Run
    from harness.run.loop import Result
    from harness.scenario import Scenario
    from harness.stack import Stack

RUNS = pytest.StashKey[list[dict[str, Any]]]()


def run(item: pytest.Item, stack: Stack, scenario: Scenario, *, seed: int | None) -> Result:
    """Run it and write its page. Raises HarnessError, once that is remembered for the summary."""
    __tracebackhide__ = True
    with quiet():
        from harness.report import render
        from harness.report.summary import Run
        from harness.run.loop import run as run_one
        from harness.stacks.other_versions import on

    chosen = item.config.stash[SUITE].settings
    scenario = on(scenario, chosen.spark)
    if scenario.crash_points:
        words = f"asked to run {scenario.path or scenario.name}, whose crash points are swept and which has no schedule"
        raise UsageError(f"{words}. Let pytest collect the file, or give `run_scenario` one with a schedule")
    seed = chosen.seed if seed is None else seed
    try:
        result = run_one(scenario, stack, reports=chosen.reports, seed=seed)
    except HarnessError as error:
        if error.folder is not None:
            render.write(error.folder)
        _failed(item, scenario, error, seed)
        raise
    render.write(result.folder)
    row = replace(Run.read(result.folder), scenario=scenario.name, verdict=result.verdict, file=scenario.path)
    row = replace(row, folder=result.folder, seconds=result.seconds, stack=chosen.stack)
    remember(item, row)
    _properties(item, row)
    return result


def completed(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> pytest.TestReport:
    """Put the item's runs on its report, and our own errors in their own words instead of a traceback."""
    error = None if call.excinfo is None else call.excinfo.value
    words = None if error is None else own_text(error)
    if error is not None and words is not None and call.when == "setup":
        from harness.scenario import Scenario

        # An item of another plugin may have an attribute of that name.
        if isinstance(scenario := getattr(item, "scenario", None), Scenario):
            _failed(item, scenario, error, item.config.stash[SUITE].settings.seed)
            report.user_properties = list(item.user_properties)
    if words is not None:
        from harness.report.ci.github import guarded

        report.longrepr = guarded(words + (_again(item) if isinstance(error, HarnessError) else ""))
    if RUNS in item.stash and report.failed and words is None:
        report.sections += [("Onceproof", text) for text in _run_texts(item)]
    if RUNS in item.stash:
        # Plain data, so that it also travels from a worker of pytest-xdist.
        report.onceproof_runs = item.stash[RUNS]  # type: ignore[attr-defined]
        del item.stash[RUNS]
    return report


def _run_texts(item: pytest.Item) -> list[str]:
    """Return the text of each run of a test, since an assertion on its verdict shows the word alone."""
    from harness.report.ci import run_text
    from harness.report.ci.github import guarded

    return [guarded(run_text.failure(run, brief=item.config.option.verbose < 1)) for run in done(item)]


def _again(item: pytest.Item) -> str:
    """Return how to repeat a run that ended in an error; the last lines of what is said of it."""
    from harness.report.ci import run_text

    commands = [run_text.command(run) for run in done(item)[-1:]]
    return "".join(f"\n\nagain:  {command}" for command in commands if command)


def done(item: pytest.Item) -> list[Run]:
    """Return the item's runs so far, as a command typed here would name their folders; none that goes with the
    session."""
    from harness.report.summary import Run

    known = [Run.unpack(run) for run in item.stash.get(RUNS, [])]
    gone = item.config.stash[SUITE].settings.keep == "none"
    return [replace(run, folder=None if gone or run.folder is None else short(run.folder)) for run in known]


def remember(item: pytest.Item, run: Run) -> None:
    """Keep a run for the report of its test."""
    # Nothing but JSON's own types: pytest-xdist sends no others, not even an enum of strings.
    item.stash.setdefault(RUNS, []).append(json.loads(json.dumps(run.pack())))


def _failed(item: pytest.Item, scenario: Scenario, error: BaseException, seed: int | None) -> None:
    """Remember a run that has no verdict."""
    from harness.suite import unjudged
    from harness.suite.options import Options

    stack = item.config.stash[SUITE].settings.stack
    failed = unjudged(scenario, Options(seed=seed), stack=stack, why=str(error))
    failed = replace(failed, folder=getattr(error, "folder", None))
    remember(item, failed)
    _properties(item, failed)


def _properties(item: pytest.Item, run: Run) -> None:
    """What JUnit shows of the run."""
    from harness.report.ci import run_text

    item.user_properties += run_text.properties(replace(run, folder=run.folder and short(run.folder)))
