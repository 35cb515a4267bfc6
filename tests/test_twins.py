"""A broken pipeline and its repair name each other, and both are put to the same test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.load import load
from harness.scenario import Scenario, Word

HOUSE = Path(__file__).parents[1]
PROGRAMS = sorted(path for room in ("procedures", "shapes") for path in (HOUSE / "pipelines" / room).glob("*.py"))
SCENARIOS = [load(path) for room in ("sinks", "shapes") for path in sorted((HOUSE / "scenarios" / room).glob("*.yaml"))]


def named(path: Path, what: str) -> list[Path]:
    """The programs that a docstring gives after `what`."""
    found = re.search(rf"^{what}: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [path.parent / name for name in found[1].split(", ")] if found else []


def runs(path: Path) -> list[Scenario]:
    """The scenarios of one program."""
    return [each for each in SCENARIOS if each.pipeline.entry == str(path.relative_to(HOUSE))]


BROKEN = [path for path in PROGRAMS if named(path, "Repair")]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda path: path.stem)
def test_a_repair_is_hit_as_its_broken_twin_is(broken: Path) -> None:
    (repair,) = named(broken, "Repair")
    assert named(repair, "Broken twin") == [broken]
    breaks = [each.schedule for each in runs(broken) if each.expect.word == Word.VIOLATED]
    held = [each.schedule for each in runs(repair) if each.expect.word == Word.HELD]
    assert breaks
    assert all(any(all(step in more for step in schedule) for more in held) for schedule in breaks)


def test_every_program_is_put_to_the_test() -> None:
    programs = [path for path in PROGRAMS if "# /// onceproof" in path.read_text(encoding="utf-8")]
    assert programs
    assert [path.name for path in programs if not runs(path)] == []
