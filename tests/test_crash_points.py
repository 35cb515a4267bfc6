"""docs/crash-points.md: the table of sinks and places in a batch names scenarios that are there, and hit there."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from harness.load import load
from harness.scenario import CrashPoint, Impact, Scenario, Step
from tests.shipped import scenarios

HOUSE = Path(__file__).parents[1]
PAGE = HOUSE / "docs" / "crash-points.md"
LINK = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
REASONS = ("none: ", "not reached", "not run: ")
BEFORE_A_COMMIT = {"all-sent", "all-written", "sink-written"}
"""Failpoints that stand behind the last row and before a commit of the program's own, as far as it has one."""


def rows() -> list[list[str]]:
    """The table's cells, its head first."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("| kind of sink |"))
    table = lines[begin : lines.index("", begin)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (table[0], *table[2:])]


def driver_dies(step: Step) -> bool:
    return step.do.impact == Impact.DRIVER_KILLED


def planned(step: Step) -> bool:
    return step.when.point == CrashPoint.BATCH_PLANNED and driver_dies(step)


def written_in_part(step: Step) -> bool:
    inside = step.when.kind == "rows" or (step.when.kind == "failpoint" and step.when.value not in BEFORE_A_COMMIT)
    return inside and driver_dies(step)


def tried_again(step: Step) -> bool:
    return step.do.kind == "kill executor" and step.when.kind in ("rows", "failpoint")


def before_its_commit(step: Step) -> bool:
    return step.when.kind == "failpoint" and step.when.value in BEFORE_A_COMMIT and driver_dies(step)


def sink_committed(step: Step) -> bool:
    return step.when.point == CrashPoint.SINK_COMMITTED


def batch_committed(step: Step) -> bool:
    return step.when.point == CrashPoint.BATCH_COMMITTED


WHERE: tuple[Callable[[Step], bool], ...] = (
    planned,
    written_in_part,
    tried_again,
    before_its_commit,
    sink_committed,
    batch_committed,
)
TABLE = rows()
CELLS = [(row, column, row[2 + column]) for row in TABLE[1:] for column in range(len(WHERE))]


def programs(row: list[str]) -> set[str]:
    return {f"pipelines/{name}" for name in re.findall("`([^`]*)`", row[1])}


def said(scenario: Scenario) -> str:
    """What it expects, as the page says it."""
    return ", ".join(kind.value for kind in scenario.expect.kinds) or str(scenario.expect.word)


def test_each_row_has_all_places_and_no_more() -> None:
    assert len(TABLE) > 20
    assert {len(row) for row in TABLE} == {2 + len(WHERE)}
    places = [number for cell in TABLE[0][2:] for number in re.findall(r"W(\d)", cell)]
    assert all(int(low) + 1 == int(high) for low, high in pairwise(places)) and places[0] == "2" and places[-1] == "8"


@pytest.mark.parametrize(("row", "column", "cell"), CELLS, ids=lambda value: str(value)[:60])
def test_a_cell_names_its_scenarios_or_says_why_it_has_none(row: list[str], column: int, cell: str) -> None:
    named = LINK.findall(cell)
    reasons = [part for part in cell.split("; ") if not LINK.search(part)]
    assert (named or reasons) and all(part.startswith(REASONS) for part in reasons), cell
    for words, link in named:
        scenario = load((PAGE.parent / link).resolve())
        assert words == said(scenario), link
        assert scenario.pipeline.entry in programs(row), link
        assert any(WHERE[column](step) for step in scenario.schedule), link


@pytest.mark.parametrize(("row", "column", "cell"), CELLS, ids=lambda value: str(value)[:60])
def test_what_is_called_not_run_is_not_run(row: list[str], column: int, cell: str) -> None:
    # A row may be one of two readers of a program's sink: what the other one has is not missing here.
    shared = [other for other in TABLE[1:] if other is not row and programs(other) & programs(row)]
    if LINK.search(cell) or shared:
        return
    its = [each for each in scenarios() if each.pipeline.entry in programs(row)]
    assert [each.name for each in its if any(WHERE[column](step) for step in each.schedule)] == []
