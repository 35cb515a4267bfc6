"""Each folder of `harness/components/` can be deleted, with those that need it: the rest is imported, loads the
scenarios that do not name it, type-checks, and passes the fast tests."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.cli.kinds import SECTIONS
from harness.scenario import Input
from tests.folders import PER_RECORD
from tests.not_of import VARIABLE

ROOT = Path(__file__).parents[1]
COMPONENTS = "harness/components"
FOLDERS = sorted(path.parent.name for path in (ROOT / COMPONENTS).glob("*/__init__.py"))
NEEDS = re.compile(r"harness\.components\.(\w+)\S* -> harness\.components\.(\w+)\S*")
PARTS = ("harness", "pipelines", "scenarios")
PROGRAM = ROOT / "tests" / "programs" / "deleted.py"
TOOL_S = 550
ALWAYS = ("tests/test_cells.py", "tests/test_compare.py", "tests/test_redact.py", "tests/test_wait.py")
"""Tests that need no component."""


def needed() -> set[tuple[str, str]]:
    """Which folder needs which other one, as the contract of `pyproject.toml` says it to `lint-imports`."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (lines,) = [each["ignore_imports"] for each in contracts if each["type"] == "independence"]
    found = [NEEDS.fullmatch(line) for line in lines]
    assert all(found), lines
    return {(match[1], match[2]) for match in found if match}


def deleted(folder: str) -> set[str]:
    """A folder, and those that cannot do without it."""
    gone: set[str] = set()
    more = {folder}
    while more:
        gone |= more
        more = {needs for needs, other in needed() if other in gone} - gone
    return gone


def copied(to: Path, gone: set[str], *folders: str) -> Path:
    """The folders of the tree without those of components that are gone."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        return gone if Path(folder) == ROOT / COMPONENTS else set()

    for folder in folders:
        shutil.copytree(ROOT / folder, to / folder, ignore=left_out)
    return to


def checked(copies: Mapping[Path, Sequence[str]]) -> list[dict[str, Any]]:
    """What is wrong with each copy, and what those of its scenarios name."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        input=json.dumps({str(copy): scenarios for copy, scenarios in copies.items()}),
        capture_output=True,
        text=True,
        timeout=TOOL_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def whole() -> dict[str, Any]:
    """The same of the tree as it is."""
    (found,) = checked({ROOT: [str(path.relative_to(ROOT)) for path in sorted((ROOT / "scenarios").glob("*/*.yaml"))]})
    return found


def without(gone: set[str], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return scenarios that name none of the folders, enough to have each kind that is left, and what each names. All
    of them are validated where types and tests are."""
    seen, out = set[str](), dict[str, Any]()
    for path, each in named.items():
        if gone.isdisjoint(each["folders"]) and not seen.issuperset(each["kinds"]):
            out[path] = each
            seen |= {*each["kinds"]}
    return out


@pytest.mark.subprocess
def test_the_rest_is_imported_and_loads_its_scenarios(tmp_path: Path) -> None:
    found = whole()
    assert found["wrong"] == {}
    # What Hadoop's daemons share is no kind.
    assert {name for named in found["named"].values() for name in named["folders"]} == {*FOLDERS} - {"hadoop"}
    rest = {folder: without(deleted(folder), found["named"]) for folder in FOLDERS}
    copies = {copied(tmp_path / folder, deleted(folder), *PARTS): list(rest[folder]) for folder in FOLDERS}
    left = dict(zip(FOLDERS, checked(copies), strict=True))
    assert {folder: each["wrong"] for folder, each in left.items() if each["wrong"]} == {}
    assert {folder: each["named"] for folder, each in left.items()} == rest


def named(gone: set[str]) -> set[str]:
    """Return the folders, and the kinds that go with them: `rotate key` with `eventhubs`."""
    registries = [section.registry for section in SECTIONS]
    kinds = [(each.origin(name).split("."), name) for each in registries for name in each.all()]
    lost = {name for words, name in kinds if words[:2] == COMPONENTS.split("/") and words[2] in gone}
    return gone | lost - {name for words, name in kinds if words[:2] != COMPONENTS.split("/") or words[2] not in gone}


def imports(path: Path) -> set[str]:
    """The names that a file imports, by their modules and with the packages that these are in."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    return {".".join(words[:n]) for words in (name.split(".") for name in found) for n in range(1, len(words) + 1)}


def without_tests(copy: Path, gone: set[str]) -> None:
    """Delete the files that import a folder that is gone, by themselves or by a helper."""
    lost = {f"{COMPONENTS.replace('/', '.')}.{folder}" for folder in gone}
    files = {path: imports(path) for path in (copy / "tests").rglob("*.py")}
    while more := {path for path, names in files.items() if path.exists() and lost & names}:
        for path in more:
            path.unlink()
            lost.add(".".join(path.relative_to(copy).with_suffix("").parts))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mypy remembers of one copy, for the next one; of the tree itself where it was asked before."""
    made = tmp_path_factory.mktemp("mypy")
    if (known := ROOT / ".mypy_cache").is_dir():
        shutil.copytree(known, made, dirs_exist_ok=True)
    return made


@pytest.mark.stack
@pytest.mark.prove
@pytest.mark.timeout(2 * TOOL_S)
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_rest_is_of_right_types_and_passes_its_tests(folder: str, tmp_path: Path, cache: Path) -> None:
    gone = deleted(folder)
    copy = copied(tmp_path / folder, gone, *PARTS, "tests", "docs", "bench", "docker", ".ci", ".github")
    for path in (*ROOT.glob("[!.]*"), *ROOT.glob(".pre-commit*")):
        if path.is_file():
            shutil.copy(path, copy)
    without_tests(copy, gone)
    for name, named in whole()["named"].items():
        if not gone.isdisjoint(named["folders"]):
            (copy / name).unlink()
    ran(copy, gone, "harness", "validate", "scenarios")
    ran(copy, gone, "mypy", "--no-error-summary", "--cache-dir", str(cache))
    # As whoever deletes a folder does it.
    (copy / "docs" / "kinds.md").write_text(ran(copy, gone, "harness", "kinds", "--markdown"))
    (copy / "scenarios" / "scenario.schema.json").write_text(ran(copy, gone, "harness.load"))
    # The default source, which a scenario has that names none, and the sink of the scenarios that tests write.
    tests = ALWAYS if {Input().source, PER_RECORD.kind} & gone else ("tests",)
    chosen = ["-m", "not (stack or subprocess or slow)", "--hypothesis-profile=work", "-n", "logical", *tests]
    ran(copy, gone, "pytest", "-q", "-p", "tests.not_of", "-p", "no:cacheprovider", *chosen)


def ran(copy: Path, gone: set[str], *words: str) -> str:
    """What a module says that runs in a copy, and does not fail."""
    environment = {**os.environ, "PYTHONPATH": str(copy), VARIABLE: ",".join(sorted(named(gone)))}
    command = [sys.executable, "-m", *words]
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=TOOL_S, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
