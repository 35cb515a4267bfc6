"""Which pipelines have changed since a commit of git."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import UsageError
from harness.fields.paths import project_root
from harness.run.baseline.digest import depends_on
from harness.scenario import Scenario
from harness.stacks.needed_parts import code
from harness.workloads import read_files

GIT_S = 60.0


def changed(scenarios: Sequence[Scenario], commit: str) -> list[Scenario]:
    """Return the scenarios whose own file has changed since the commit, or one that their program, their input or the
    code that reads their sinks is. Raises UsageError where git cannot tell."""
    known: dict[Path, list[Path]] = {}
    return [each for each in scenarios if any(_touched(each, known, commit))]


def _touched(scenario: Scenario, known: dict[Path, list[Path]], commit: str) -> Iterator[bool]:
    root = project_root(Path(scenario.path)).resolve()
    if root not in known:
        known[root] = [*_files(root, commit)]
    inputs, own = read_files(scenario.input, root=root), code(scenario)
    there = [Path(scenario.path), *depends_on(scenario.pipeline, root), *inputs, *own]
    for path in (each.resolve() for each in there):
        yield from (each == path or path in each.parents for each in known[root])


def _files(root: Path, commit: str) -> Iterator[Path]:
    """Yield the files in the repository around `root` that differ from the commit, those that are gone or not yet known
    to git among them."""
    top = Path(_git(root, commit, "rev-parse", "--show-toplevel").strip())
    differ = _git(top, commit, "diff", "--name-only", "-z", "--end-of-options", commit, "--")
    fresh = _git(top, commit, "ls-files", "--others", "--exclude-standard", "-z")
    yield from (top / name for name in (differ + fresh).split("\0") if name)


def _git(folder: Path, commit: str, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=GIT_S)
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise UsageError(f"asked for what has changed since {commit}; git could not be asked: {failure}") from failure
    if done.returncode:
        saw = " ".join(done.stderr.split())
        raise UsageError(f"asked for what has changed since {commit} in {folder}; git said: {saw}. Name a commit")
    return done.stdout
