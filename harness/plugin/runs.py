"""Runs one scenario for a test, and puts what came of it on the test's report."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import HarnessError
from harness.plugin.files import ScenarioItem
from harness.plugin.suite import SUITE, quiet, said, short

if TYPE_CHECKING:
    from harness.report.summary import Run
    from harness.run.loop import Result
    from harness.scenario import Scenario
    from harness.stack import Stack

RUNS = pytest.StashKey[list[dict[str, Any]]]()


def run(item: pytest.Item, stack: Stack, scenario: Scenario, *, seed: int | None) -> Result:
    """Run it, and again where that has to be confirmed: then the second is what came of it. Raises HarnessError."""
    __tracebackhide__ = True
    with quiet():
        from harness.run.plan import with_standby
        from harness.suite.run_again import AGAIN, cold, compared, wants_another

    chosen = item.config.stash[SUITE].settings
    first = _once(item, stack, with_standby(scenario) if chosen.standby else scenario, seed=seed)
    _remember(item, _row(scenario.name, first, chosen.stack))
    if not wants_another(first):
        _properties(item, first)
        return first
    second = _once(item, stack, cold(scenario), seed=seed)
    second = replace(second, verdict=compared(second.verdict, first.verdict, first.folder))
    _properties(item, second)
    _remember(item, _row(scenario.name + AGAIN, second, chosen.stack))
    return second


def _once(item: pytest.Item, stack: Stack, scenario: Scenario, *, seed: int | None) -> Result:
    """Run it and write its page. Raises HarnessError, once that is remembered for the summary."""
    __tracebackhide__ = True
    from harness.report import render

    with quiet():
        from harness.run.loop import run as run_one

    chosen = item.config.stash[SUITE].settings
    try:
        result = run_one(scenario, stack, reports=chosen.reports, seed=chosen.seed if seed is None else seed)
    except HarnessError as error:
        if error.folder is not None:
            render.write(error.folder)
        _remember(item, replace(_failed(scenario, str(error)), folder=error.folder))
        raise
    render.write(result.folder)
    return result


def _row(name: str, result: Result, stack: str) -> Run:
    from harness.report.summary import Run

    return Run(scenario=name, verdict=result.verdict, folder=result.folder, seconds=result.seconds, stack=stack)


def tell(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> pytest.TestReport:
    """Put the item's runs on its report, and our own errors in their own words instead of a traceback."""
    words = None if call.excinfo is None else said(call.excinfo.value)
    if words is not None:
        report.longrepr = words
    if words is not None and call.when == "setup" and isinstance(item, ScenarioItem):
        _remember(item, _failed(item.scenario, words))
    if RUNS in item.stash and report.failed and words is None:
        report.sections += [("Onceproof", text) for text in _told(item)]
    if RUNS in item.stash:
        # Plain data, so that it also travels from a worker of pytest-xdist.
        report.onceproof_runs = item.stash[RUNS]  # type: ignore[attr-defined]
        del item.stash[RUNS]
    return report


def _told(item: pytest.Item) -> list[str]:
    """What each run of a test says in full: an assertion on its verdict shows the word alone."""
    from harness.report.failure_text import failure
    from harness.report.summary import Run, asked

    done = [Run.unpack(run) for run in item.stash[RUNS]]
    return [
        failure(run.scenario, run.verdict, None if run.folder is None else short(run.folder), asked=asked(run.folder))
        for run in done
    ]


def _remember(item: pytest.Item, done: Run) -> None:
    # Nothing but JSON's own types: pytest-xdist sends no others, not even an enum of strings.
    item.stash.setdefault(RUNS, []).append(json.loads(json.dumps(done.pack())))


def _failed(scenario: Scenario, why: str) -> Run:
    from harness.report.summary import Run, error

    return Run(scenario=scenario.name, verdict=error(why, expect=str(scenario.expect)))


def _properties(item: pytest.Item, done: Result) -> None:
    """What JUnit shows of the run."""
    from harness.run_folder.store import RunFolder

    stored = RunFolder.open(done.folder).read()["run"]
    steps = done.verdict.steps
    item.user_properties += [
        ("seed", stored.get("seed", "")),
        ("verdict", done.verdict.word.value),
        ("run_folder", str(short(done.folder))),
        ("faults", "; ".join(f"{step.name} ({step.point}): {'hit' if step.hit else 'MISSED'}" for step in steps)),
    ]
