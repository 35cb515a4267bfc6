"""A scenario with crash points as a test: each cell is a subtest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from harness.errors import HarnessError
from harness.plugin import runs
from harness.plugin.suite import SUITE, NotAsExpected, quiet
from harness.report.ci import run_text
from harness.report.escape import visible
from harness.scenario import Scenario
from harness.stack import Stack


def prove(request: pytest.FixtureRequest, stack: Stack, scenario: Scenario) -> None:
    """Sweep the scenario's pipeline. Raises NotAsExpected if the whole is not as expected, and HarnessError. Each cell
    that is not as expected fails its subtest."""
    __tracebackhide__ = True
    with quiet():
        from harness.suite import Suite, unjudged
        from harness.suite.options import Options
        from harness.suite.progress import progress
        from harness.sweep.command import swept
        from harness.sweep.swept import watch

    config = request.config
    chosen, worker = config.stash[SUITE].settings, hasattr(config, "workerinput")
    # Workers of pytest-xdist are side by side already.
    options = Options(stack=chosen.stack, reports=chosen.reports, seed=chosen.seed, jobs=1 if worker else None)
    try:
        found = swept(watch(scenario, stack, options, pairs=False), stack, Suite(options, progress(), writes=False))
    except HarnessError as failure:
        runs.remember(request.node, unjudged(scenario, options, stack=stack.name, why=str(failure)))
        raise
    config.stash[SUITE].notify(found.sentence)
    for row in found.rows:
        runs.remember(request.node, row)
    wrong, brief = [row for row in found.rows if row.wrong], request.config.option.verbose < 1
    if (subtest := _subtests(request)) is None:
        if found.code:
            raise NotAsExpected("\n\n".join([found.sentence, *(run_text.failure(row, brief=brief) for row in wrong)]))
        return
    for row in found.rows:
        with subtest(row.scenario.removeprefix(f"{scenario.name}: ")):
            if row.known:
                pytest.xfail(f"known: {visible(row.known)}")
            if row.wrong:
                raise NotAsExpected(run_text.failure(row, brief=brief))
    if found.code and not wrong:
        raise NotAsExpected(found.sentence)


def _subtests(request: pytest.FixtureRequest) -> Callable[[str], AbstractContextManager[None]] | None:
    """Return what begins a subtest of that name; None before version 9 of pytest, which has none."""
    try:
        fixture = request.getfixturevalue("subtests")
    except pytest.FixtureLookupError:
        return None
    return lambda name: fixture.test(msg=name)
