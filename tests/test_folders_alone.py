"""Each folder of `harness/components/` can be deleted, with those that need it: the rest is imported, loads the
scenarios that do not name it, type-checks and passes its tests."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
COMPONENTS = "harness/components"
FOLDERS = sorted(path.parent.name for path in (ROOT / COMPONENTS).glob("*/__init__.py"))
NEEDS = re.compile(r"harness\.components\.(\w+)\S* -> harness\.components\.(\w+)\S*")
PARTS = ("harness", "pipelines", "scenarios")
PROGRAM = ROOT / "tests" / "programs" / "deleted.py"
TOOL_S = 550


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


def copied(to: Path, gone: set[str], *rooms: str) -> Path:
    """The folders of the tree without those of components that are gone."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        return gone if Path(folder) == ROOT / COMPONENTS else set()

    for room in rooms:
        shutil.copytree(ROOT / room, to / room, ignore=left_out)
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


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """The same of the tree as it is."""
    (found,) = checked({ROOT: [str(path.relative_to(ROOT)) for path in sorted((ROOT / "scenarios").glob("*/*.yaml"))]})
    return found


def without(folder: str, whole: Mapping[str, Any]) -> list[str]:
    """A scenario of each set of kinds that does not name the folder."""
    gone = deleted(folder)
    rest = {path: named for path, named in whole["named"].items() if gone.isdisjoint(named["folders"])}
    return list({tuple(named["kinds"]): path for path, named in rest.items()}.values())


@pytest.fixture(scope="module")
def found(whole: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Any]]:
    """By the folder that was deleted, what is wrong with what is left."""
    copies = {name: copied(tmp_path_factory.mktemp(name), deleted(name), *PARTS) for name in FOLDERS}
    lines = checked({copy: without(name, whole) for name, copy in copies.items()})
    return dict(zip(copies, lines, strict=True))


def test_the_whole_tree_is_right(whole: Mapping[str, Any]) -> None:
    assert whole["wrong"] == {}
    # What Hadoop's daemons share is no kind.
    assert {name for named in whole["named"].values() for name in named["folders"]} == {*FOLDERS} - {"hadoop"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_rest_is_imported_and_loads_its_scenarios(
    folder: str, whole: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]
) -> None:
    assert found[folder]["wrong"] == {}
    assert found[folder]["named"] == {path: whole["named"][path] for path in without(folder, whole)}
