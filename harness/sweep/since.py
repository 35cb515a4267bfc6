"""Which pipelines have changed since a commit of git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.fields.paths import project_root
from harness.run.baseline.digest import depends_on
from harness.scenario import Scenario
from harness.stacks.needed_parts import code
from harness.workloads import read_files

GIT_S = 60.0


def changed(scenarios: Sequence[Scenario], commit: str) -> list[Scenario]:
    """Return the scenarios with a file that has changed since the commit. It is their own file, or one of their
    program, of their input or of the code that reads their sinks. Raises UsageError where git cannot tell."""
    known: dict[Path, _Files] = {}
    return [each for each in scenarios if any(_touched(each, known, commit))]


@dataclass(frozen=True)
class _Files:
    """What git says of a repository: the files that it knows, and those that differ from the commit."""

    tracked: frozenset[Path]
    differ: tuple[Path, ...]


def _touched(scenario: Scenario, known: dict[Path, _Files], commit: str) -> Iterator[bool]:
    root = project_root(Path(scenario.path)).resolve()
    if root not in known:
        known[root] = _files(root, commit)
    inputs, own = read_files(scenario.input, root=root), code(scenario)
    there = [Path(scenario.path), *depends_on(scenario.pipeline, root), *inputs, *own]
    for path in (each.resolve() for each in there):
        yield path.is_file() and path not in known[root].tracked
        yield from (each == path or path in each.parents for each in known[root].differ)


def _files(root: Path, commit: str) -> _Files:
    """Return what git says of the repository around `root`. What is gone, and what it does not know yet, differs."""
    top = Path(_git(root, commit, "rev-parse", "--show-toplevel").strip())
    differ = _git(top, commit, "diff", "--name-only", "--no-renames", "-z", "--end-of-options", commit, "--")
    fresh = _git(top, commit, "ls-files", "--others", "--exclude-standard", "-z")
    tracked = _git(top, commit, "ls-files", "-z")
    paths = [[top / name for name in text.split("\0") if name] for text in (tracked, differ + fresh)]
    return _Files(frozenset(paths[0]), tuple(paths[1]))


def _git(folder: Path, commit: str, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, timeout=GIT_S)
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise UsageError(f"asked for what has changed since {commit}; git could not be asked: {failure}") from failure
    if done.returncode:
        saw = " ".join(os.fsdecode(done.stderr).split())
        raise UsageError(f"asked for what has changed since {commit} in {folder}; git said: {saw}. Name a commit")
    return os.fsdecode(done.stdout)
