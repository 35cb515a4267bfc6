"""docs/seeds.md: each claim of the articles has a scenario that is there and the verdict of a stored run, or says what
is not run yet."""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml import YAML

from bench.catalogue import anchored, link, read
from bench.ran import digest
from bench.seeds import CATALOGUE, CHANGED, CLAIMS, NOT_RUN, ROOT, Found, known, page, runs
from harness.load import load
from harness.scenario import Guarantee

PAGE = ROOT / "docs" / "seeds.md"
TOLD: dict[str, Any] = YAML(typ="safe").load(CLAIMS)
FOUND = known()
LINKED = re.compile(r"\]\(\.\./scenarios/([\w/]+)\.yaml\): (.*?)(?=<br>| \|)")
VERDICT = re.compile(r"\[([^]]+)\]\(catalogue\.md#([\w-]+)\)")


def rows() -> list[str]:
    """The rows of both tables."""
    return [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "---" not in line
    ]


def test_the_page_is_the_one_that_is_made() -> None:
    assert PAGE.read_text(encoding="utf-8").splitlines() == "\n".join(page(TOLD, FOUND)).splitlines(), (
        "PYTHONPATH=. python bench/seeds.py > docs/seeds.md"
    )


def test_each_scenario_is_there_and_has_the_verdict_of_a_stored_run() -> None:
    linked = [found for row in rows() for found in LINKED.findall(row)]
    assert len(linked) > 60
    for name, told in linked:
        assert FOUND.runs.get(name), name
        assert VERDICT.findall(told) == [*FOUND.runs[name].items()], name


def test_the_row_of_each_verdict_is_there() -> None:
    catalogue = CATALOGUE.read_text(encoding="utf-8").splitlines()
    linked = {(name, *found) for row in rows() for name, told in LINKED.findall(row) for found in VERDICT.findall(told)}
    for name, verdict, anchor in linked:
        (row,) = [line for line in catalogue if f'<a id="{anchor}"></a>' in line]
        assert f'<a id="{anchor}"></a>{link(name)}' in row and f"| {verdict} |" in row, anchor


def test_a_scenario_that_has_no_run_does_not_pass_for_one_that_has() -> None:
    claim = {"claim": "c", "of": ["a"], "shows": ["proving/upsert_before_offset_commit"]}
    made = [*page({"articles": {}, "points": [], "claims": [claim]}, Found({}, claim["shows"]))]
    assert NOT_RUN in made[-1] and VERDICT.findall(made[-1]) == [] and CHANGED not in made[-1]


def test_a_verdict_of_another_scenario_or_program_than_is_there_now_says_so() -> None:
    told = {name: each for row in rows() for name, each in LINKED.findall(row)}
    then = {name: {each["ran"] for each in read() if each["scenario"] == name} for name in told}
    changed = {name for name, ran in then.items() if ran != {digest(ROOT, name)}}
    assert {name for name, each in told.items() if CHANGED in each} == changed
    claim = {"claim": "c", "of": ["a"], "shows": ["s/a", "s/b"]}
    found = Found({"s/a": {"held": "s-a"}, "s/b": {"held": "s-b"}}, ["s/b"])
    made = [*page({"articles": {}, "points": [], "claims": [claim]}, found)]
    assert made[-1].endswith(
        f"{link('s/a')}: [held](catalogue.md#s-a)<br>{link('s/b')}: [held](catalogue.md#s-b), {CHANGED} |"
    )


def test_each_point_of_failure_is_told_for_each_guarantee() -> None:
    assert [each["point"] for each in TOLD["points"]] == ["input source", "receiver", "task", "sink", "driver"]
    for each in TOLD["points"]:
        for promise in Guarantee:
            cell = each[promise]
            assert cell.get("shows") or cell["not_run"], (each["point"], promise)
            for name in cell.get("shows", ()):
                assert load(ROOT / "scenarios" / f"{name}.yaml").guarantee is promise, name


def test_each_claim_is_of_an_article_and_is_shown_or_said_not_to_be() -> None:
    claims = TOLD["claims"]
    assert {article for each in claims for article in each["of"]} == set(TOLD["articles"])
    assert [each["claim"] for each in claims if not (each.get("shows") or each.get("not_run"))] == []


def test_what_the_catalogue_says_of_one_scenario_is_one_entry() -> None:
    head = "| program | asked | where the batch was | fault | seen at the hit | verdict | stack | scenarios |"
    row = "| `a.py` | - | w | kill driver | {} | {} | processes | {} |"
    text = ["## one and two", head, row.format("x", "held", f"{anchored('s/a')} 2 times<br>{anchored('s/b')}")]
    text += [row.format("y", "violated: lost", anchored("s/a", 2)), row.format("z", "held", anchored("s/a", 3))]
    assert runs("\n".join(text)) == {"s/a": {"held": "s-a", "violated: lost": "s-a-2"}, "s/b": {"held": "s-b"}}
