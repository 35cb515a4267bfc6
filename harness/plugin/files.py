"""Scenario files as tests, and which YAML files are scenarios at all.

The plugin loads into every pytest run of its users, so it must not take files that are not ours.
A `.yaml` or `.yml` file is a scenario in four cases:

- One of its first lines is our modeline (`# yaml-language-server: $schema=...scenario.schema.json`).
- It lies under a folder that the ini key `harness_scenarios` names.
- It is in or under a folder called `scenarios` and has `pipeline:` and one more of our keys at its top.
- It lies anywhere else and has both `pipeline:` and `verdict:` (or the old `expect:`) at its top.

A file in a folder called `scenarios` that comes near and misses (`pipelin:`) is named after collection, never
dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import ScenarioError
from harness.plugin import runs
from harness.plugin.suite import SUITE, NotAsExpected, own_text, short

if TYPE_CHECKING:
    from harness.run.loop import Result
    from harness.scenario import Scenario

MODELINE = re.compile(r"^#\s*yaml-language-server:\s*\$schema=\S*scenario\.schema\.json", re.MULTILINE)
TOP_KEY = re.compile(r"^([a-z_]+)[ \t]*:(?:\s|$)", re.MULTILINE)
VERDICT = frozenset({"verdict", "expect"})
"""The key as it is, and as it was: the loader refuses the old one, which must not be passed over."""
OURS = VERDICT | {"pipeline", "schedule", "crash_points", "guarantee", "sink", "input"}
HEAD_BYTES = 64 * 1024


def collect(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for `path` if it is a scenario."""
    suite = parent.config.stash[SUITE]
    if any(path.is_relative_to(folder) for folder in suite.settings.folders):
        found, near = True, False
    else:
        found, near = recognise(path, at_home="scenarios" in _below_root(path, parent.config.rootpath))
    if near:
        suite.passed_over.append(path)
    return ScenarioFile.from_parent(parent, path=path) if found else None


def recognise(path: Path, *, at_home: bool) -> tuple[bool, bool]:
    """Return whether the file is a scenario, and if not, whether it comes near. `at_home`: it is under a folder
    `scenarios`. Reads the text of the first 64 KB only: nothing is parsed before the file is known to be ours."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    except OSError:
        return False, False
    if MODELINE.search(head[:2000]):
        return True, False
    keys = OURS.intersection(TOP_KEY.findall(head))
    if "pipeline" in keys and (keys & VERDICT or (at_home and len(keys) > 1)):
        return True, False
    return False, at_home and len(keys) > 2


def _below_root(path: Path, root: Path) -> tuple[str, ...]:
    """Return the folders that count: those of the project, not where the project happens to lie."""
    return path.relative_to(root).parts[:-1] if path.is_relative_to(root) else path.parts[-2:-1]


class ScenarioFile(pytest.File):
    """Holds one test, called like the file. A wrong file is an error of collection: better now than after minutes
    on a stack. `mistakes` are what is wrong with it, as a worker of pytest-xdist can send them."""

    mistakes: tuple[tuple[str, int, int, str], ...] = ()

    def collect(self) -> Iterable[pytest.Item]:
        from harness.errors import UsageError
        from harness.load import load
        from harness.run_folder.store import slug
        from harness.stacks.other_versions import on
        from harness.stacks.registry import STACKS
        from harness.stacks.supported import unsupported

        chosen = self.config.stash[SUITE].settings
        scenario = on(load(short(self.path)), chosen.spark)
        proof = _sweep(scenario) if scenario.crash_points else _proof(scenario)
        if scenario.crash_points:
            other = self.config.stash[SUITE].swept.setdefault(slug(scenario.name), self.path)
            if other != self.path:
                raise UsageError(f"{short(other)} has the name {scenario.name!r}, too; give each sweep another name")
        item = ScenarioItem.from_parent(self, name=self.path.stem, callobj=proof)
        item.scenario = scenario
        for tag in dict.fromkeys(("stack", *scenario.tags)):
            _register(self.config, tag)
            item.add_marker(tag)
        if (stack := chosen.stack) in STACKS.all() and (steps := unsupported(scenario, stack)):
            why = f"not run: the stack {stack} does not support {', '.join(steps)}"
            item.add_marker(pytest.mark.skip(reason=why))
        yield item

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, ScenarioError):
            self.mistakes = tuple((each.file, each.line, each.column, each.text) for each in excinfo.value.mistakes)
        return own_text(excinfo.value) or super().repr_failure(excinfo)


class ScenarioItem(pytest.Function):
    """One scenario as a test with real fixtures."""

    scenario: Scenario

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


def _proof(scenario: Scenario) -> Callable[..., None]:
    def prove(request: pytest.FixtureRequest, run_scenario: Callable[..., Result]) -> None:
        from harness.report.ci import run_text
        from harness.report.escape import visible

        if run_scenario(scenario).verdict.as_expected:
            return
        run = runs.done(request.node)[-1]
        if run.known:
            pytest.xfail(f"known: {visible(run.known)}")
        # Also with `--runxfail`, by which pytest runs what is known to fail as any other test.
        raise NotAsExpected(run_text.failure(run, brief=request.config.option.verbose < 1))

    return prove


def _sweep(scenario: Scenario) -> Callable[..., None]:
    def prove(onceproof_sweep: Callable[[Scenario], None]) -> None:
        onceproof_sweep(scenario)

    return prove


def _register(config: pytest.Config, tag: str) -> None:
    """Known markers only, or pytest's strict mode refuses the tag."""
    known = {line.split(":")[0].split("(")[0].strip() for line in config.getini("markers")}
    if tag not in known:
        config.addinivalue_line("markers", f"{tag}: tag of a scenario file")
