"""bench/records/seeds.md: each claim of the articles has a scenario that is there and the verdict of a stored run, or
says what is not run yet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest

from bench.catalogue import anchored, lacking, link, read
from bench.ran import digest
from bench.seeds import CATALOGUE, CHANGED, NO_SCENARIO, NOT_RUN, ROOT, WRONG, Found, loaded, page, runs
from bench.seeds import known as known_now
from harness.load import load
from harness.scenario import Guarantee

PAGE = ROOT / "bench" / "records" / "seeds.md"
TOLD = loaded()
LINKED = re.compile(r"\]\(\.\./\.\./scenarios/([\w/]+)\.yaml\): (.*?)(?=<br>| \|)")
SETTING = re.compile(r"spark\.streaming\.[\w.]*\w")
VERDICT = re.compile(r"\[([^]]+)\]\(catalogue\.md#([\w-]+)\)")

WITHOUT_A_SCENARIO = {
    "checkpoint-dir-setting": "Spark passes over the setting: a run with it is the run without it",
    "data-lake-replayable": "nobody had an account; given one, the scenarios of Azure run there by `--stack external`",
    "log-storage": "a program of DStreams is followed in a local folder alone",
    "nothing-before-start": "nothing is sent, nothing comes, and nothing can be struck",
    "other-sources": "nothing here is like IoT Hub, and Spark 4.0 reads none of the others",
    "six-in-a-batch": "the clock decides how many records a batch has: a scenario would say yes and no by chance",
    "speed": "a verdict is of delivery, not of speed",
    "two-phase-commit": "it is advice for systems that are not named, and what it comes to depends on them",
}
"""By row of bench/seeds.yaml, why no scenario shows what becomes of the claim. Everything else has one."""


@cache
def known() -> Found:
    """Read every scenario and program, once, and not where this file is only collected."""
    return known_now()


def rows() -> list[str]:
    """The rows of both tables."""
    return [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "---" not in line
    ]


@pytest.mark.slow
def test_the_page_is_the_one_that_is_made() -> None:
    assert PAGE.read_text(encoding="utf-8").splitlines() == "\n".join(page(TOLD, known())).splitlines(), (
        "PYTHONPATH=. python bench/seeds.py > bench/records/seeds.md"
    )


@pytest.mark.slow
def test_each_scenario_has_the_verdict_of_a_stored_run_or_is_said_not_to_have_run() -> None:
    linked = [found for row in rows() for found in LINKED.findall(row)]
    assert len(linked) > 60
    left = {*lacking(known().runs)}
    for name, told in linked:
        assert VERDICT.findall(told) == [*known().runs.get(name, {}).items()], name
        assert (name in known().runs, NOT_RUN in told) == ((False, True) if name in left else (True, False)), name


def test_the_row_of_each_verdict_is_there() -> None:
    catalogue = CATALOGUE.read_text(encoding="utf-8").splitlines()
    linked = {(name, *found) for row in rows() for name, told in LINKED.findall(row) for found in VERDICT.findall(told)}
    for name, verdict, anchor in linked:
        (row,) = [line for line in catalogue if f'<a id="{anchor}"></a>' in line]
        assert f'<a id="{anchor}"></a>{link(name)}' in row and f"| {verdict} |" in row, anchor


def test_a_scenario_that_has_no_run_does_not_pass_for_one_that_has() -> None:
    claim = {"row": "r", "claim": "c", "shows": ["proving/upsert_before_offset_commit"]}
    made = [*page({"articles": {}, "points": [], "claims": [claim]}, Found({}, claim["shows"]))]
    assert NOT_RUN in made[-1] and VERDICT.findall(made[-1]) == [] and CHANGED not in made[-1]


@pytest.mark.slow
def test_a_verdict_of_another_scenario_or_program_than_is_there_now_says_so() -> None:
    told = {name: each for row in rows() for name, each in LINKED.findall(row)}
    then = {name: {each["ran"] for each in read() if each["scenario"] == name} for name in told}
    changed = {name for name, ran in then.items() if ran - {digest(ROOT, name)}}
    assert {name for name, each in told.items() if CHANGED in each} == changed
    claim = {"row": "r", "claim": "c", "shows": ["s/a", "s/b"]}
    found = Found({"s/a": {"held": "s-a"}, "s/b": {"held": "s-b"}}, ["s/b"])
    made = [*page({"articles": {}, "points": [], "claims": [claim]}, found)]
    assert made[-1].endswith(
        f"{link('s/a')}: [held](catalogue.md#s-a)<br>{link('s/b')}: [held](catalogue.md#s-b), {CHANGED} |"
    )


@pytest.mark.slow
def test_each_point_of_failure_has_a_scenario_for_each_guarantee() -> None:
    assert [each["point"] for each in TOLD["points"]] == ["input source", "receiver", "task", "sink", "driver"]
    for each in TOLD["points"]:
        for promise in Guarantee:
            cell = each[promise]
            assert cell["shows"] and "no_scenario" not in cell, (each["point"], promise)
            for name in cell["shows"]:
                assert load(ROOT / "scenarios" / f"{name}.yaml").guarantee is promise, name


@pytest.mark.slow
def test_each_point_of_failure_has_the_articles_claim_and_names_its_rows() -> None:
    claims = {each["row"] for each in TOLD["claims"]}
    for each in TOLD["points"]:
        assert each["claim"] and each["rows"] and {*each["rows"]} <= claims, each["point"]
    head = "| point of failure | the articles' claim | exactly-once | at-least-once | at-most-once |"
    assert head in [*page(TOLD, known())]


def unshown(claims: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By row without a scenario, what it says of that."""
    return {each["row"]: each.get("no_scenario", "") for each in claims if not each.get("shows")}


def test_a_row_without_a_scenario_is_allowed_by_name_and_says_so() -> None:
    found = unshown(TOLD["claims"])
    assert found.keys() == WITHOUT_A_SCENARIO.keys(), "give the row a scenario, or take it in here with a reason"
    assert [row for row, words in found.items() if not words] == []
    assert [row for row, why in WITHOUT_A_SCENARIO.items() if not why] == []
    claims = [{"row": "new", "claim": "c", "shows": []}, {"row": "old", "claim": "c", "shows": ["s/a"]}]
    assert unshown([*claims, {"row": "none", "claim": "c", "no_scenario": "n"}]) == {"new": "", "none": "n"}


def test_a_point_of_failure_names_the_paragraphs_of_its_rows() -> None:
    cell = {"shows": ["s/a"]}
    point = {"point": "p", "claim": "c", "rows": ["q", "r"], **{str(promise): cell for promise in Guarantee}}
    articles = {"one": {"title": "t", "claims": [[1, "p", "x"], [2, "q", "y"], [4, "r", "z"]]}}
    made = [*page({"articles": articles, "points": [point], "claims": []}, Found({"s/a": {"held": "s-a"}}))]
    shown = f"{link('s/a')}: [held](catalogue.md#s-a)"
    assert f"| p<br>one 1 | c<br>one 2, 4 | {shown} | {shown} | {shown} |" in made


@pytest.mark.parametrize("article", TOLD["articles"])
def test_each_paragraph_of_an_article_has_its_claims_or_claims_nothing(article: str) -> None:
    its = TOLD["articles"][article]
    claimed = [at for at, _, _ in its["claims"]]
    nothing = [at for numbers in its["nothing"].values() for at in numbers]
    assert sorted([*{*claimed}, *nothing]) == [*range(1, its["paragraphs"] + 1)]
    assert claimed == sorted(claimed)


def test_each_claim_of_an_article_has_a_row_and_each_row_is_claimed() -> None:
    named = [*(each["row"] for each in TOLD["claims"]), *(each["point"] for each in TOLD["points"])]
    claimed = {row for its in TOLD["articles"].values() for _, row, _ in its["claims"]}
    assert [row for row, times in Counter(named).items() if times > 1] == []
    assert claimed == {*named}


def test_a_row_names_the_paragraphs_that_claim_it_and_what_is_the_case_instead() -> None:
    rows = [{"row": "r", "claim": "c", "shows": ["s/a"], "wrong": "w", "no_scenario": "n"}]
    articles = {
        "one": {"title": "t", "claims": [[1, "r", "x"], [2, "q", "y"], [3, "r", "z"], [3, "r", "zz"]]},
        "two": {"title": "u", "claims": [[1, "q", "x"]]},
    }
    made = [*page({"articles": articles, "points": [], "claims": rows}, Found({"s/a": {"held": "s-a"}}))]
    shown = f"{link('s/a')}: [held](catalogue.md#s-a)<br>{WRONG}*w*<br>{NO_SCENARIO}n"
    assert made[-1] == f"| c | one 1, 3 | {shown} |"


def test_the_settings_that_the_rows_name_are_spark_s_but_for_the_one_that_is_said_not_to_be() -> None:
    """Scala keeps the names of settings as strings in its classes."""
    (path,) = (Path(pyspark.__file__).parent / "jars").glob("spark-streaming_*.jar")
    with ZipFile(path) as jar:
        classes = b"".join(jar.read(name) for name in jar.namelist() if name.endswith(".class"))
    named = {name for each in TOLD["claims"] for name in SETTING.findall(" ".join(map(str, each.values())))}
    assert len(named) == 3
    assert {name for name in named if name.encode() not in classes} == {"spark.streaming.checkpointDir"}


def test_what_the_catalogue_says_of_one_scenario_is_one_entry() -> None:
    head = "| program | asked | where the batch was | fault | seen at the injection | verdict | stack | scenarios |"
    row = "| `a.py` | - | w | kill driver | {} | {} | processes | {} |"
    text = ["## one and two", head, row.format("x", "held", f"{anchored('s/a')} 2 times<br>{anchored('s/b')}")]
    text += [row.format("y", "violated: lost", anchored("s/a", 2)), row.format("z", "held", anchored("s/a", 3))]
    assert runs("\n".join(text)) == {"s/a": {"held": "s-a", "violated: lost": "s-a-2"}, "s/b": {"held": "s-b"}}
