"""The table of scenarios by versions of Spark, in the page of many runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.report import render
from harness.report.many.about import About, stored
from harness.report.many.page import FULL, Many, build
from harness.report.many.seen import Seen
from harness.report.many.versions import Versions, versions
from harness.scenario import Word

NOWHERE = Path("/nowhere")


def ran(scenario: str, version: str, word: Word = Word.HELD, *, good: bool = True, **kinds: int) -> Seen:
    return Seen(scenario=scenario, word=word, as_expected=good, kinds=kinds, about=About(spark=version))


RUNS = [
    ran("append", "4.10.0", Word.VIOLATED, duplicated=3),
    ran("append", "4.9.0", Word.VIOLATED, duplicated=5),
    ran("append", "3.5.7", Word.VIOLATED, duplicated=4),
    ran("upsert", "4.10.0"),
    ran("upsert", "4.9.0", Word.VIOLATED, good=False, lost=1),
    ran("upsert", ""),
]


def table(runs: list[Seen], rows: int = 9) -> Versions:
    return versions(runs, rows=rows)


def test_each_scenario_has_a_row_and_each_version_a_column_in_its_order() -> None:
    found = table(RUNS)
    assert found.heads == ["3.5.7", "4.9.0", "4.10.0"]
    assert [(line.name, line.differs) for line in found.lines] == [("upsert", True), ("append", False)]
    told = [[(each.word, *each.kinds, each.wrong) for each in cell] for cell in found.lines[0].cells]
    assert told == [[], [("violated", "lost", True)], [("held", False)]]
    assert (found.differing, found.left) == (1, 0)


def test_what_does_not_fit_is_counted() -> None:
    assert (len(table(RUNS, rows=1).lines), table(RUNS, rows=1).left) == (1, 1)
    left = build(Many(seen=RUNS), lambda _: None, replace(FULL, grid=1))["left"]
    assert "Left out: 1 scenario in the table of versions." in left


def test_runs_of_one_version_have_no_table() -> None:
    assert table([ran("append", "4.1.1"), ran("upsert", "4.1.1"), ran("upsert", "")]).lines == []
    assert 'id="versions"' not in render.many_page(NOWHERE, Many(seen=[ran("append", "4.1.1")]))


def test_the_page_has_it() -> None:
    html = render.many_page(NOWHERE, Many(seen=RUNS))
    assert 'id="versions"' in html
    assert "1 came to something else on one version than on another." in html


def test_a_stored_run_says_the_version_of_its_first_attempt(tmp_path: Path) -> None:
    run = {"stack": {"spark": {"version": "4.2.0"}, "spark from attempt 2 on": {"version": "4.1.1"}}}
    assert stored(run, {"scenario": {"name": "a"}}, tmp_path / "history", 1.0).spark == "4.2.0"
    assert stored({}, {"scenario": {"name": "a"}}, tmp_path / "history", 1.0).spark == ""
