"""The pages that explain: each kind of finding has its section, each word of the report is in the glossary, each link
between our pages leads somewhere, and the first page is short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.judge.exposure import COMMITTED, EARLY, PLANNED, RECEIVED, WRITING, WRITTEN
from harness.load import load
from harness.scenario import CrashPoint, Guarantee, Harm, Kind, Word
from tests.shipped import scenario as shipped

HOUSE = Path(__file__).parents[1]
DOCS = HOUSE / "docs"
FINDINGS = (DOCS / "findings.md").read_text(encoding="utf-8")
GLOSSARY = (DOCS / "glossary.md").read_text(encoding="utf-8")
PAGE = (HOUSE / "harness" / "report" / "templates" / "report.html.j2").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
BESIDE = [HOUSE / folder / "README.md" for folder in ("bench", "bench/readers", "docs/ci", "pipelines")]
PAGES = [*sorted(HOUSE.glob("*.md")), *sorted(DOCS.glob("*.md")), *BESIDE]
FILE = re.compile(r"`((?:bench|docs|harness|scenarios|pipelines|tests)/[^`\s]*|\.ci/run)`")


def sections(text: str) -> dict[str, str]:
    """The text below each heading of the second level."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_kind_of_finding_has_its_section_and_no_other() -> None:
    assert set(sections(FINDINGS)) == {kind.value for kind in Kind}


@pytest.mark.parametrize("kind", [kind.value for kind in Kind])
def test_a_section_says_cause_confirmation_and_repair(kind: str) -> None:
    text = sections(FINDINGS)[kind]
    assert [part for part in ("**Cause.**", "**Confirm.**", "**Repair.**") if part not in text] == []
    assert LINK.search(text)


TWINS = [Kind.DUPLICATED, Kind.LOST, Kind.WRONG_AGGREGATE, Kind.STALLED]


def test_the_page_says_which_kinds_have_scenarios_and_which_are_planted() -> None:
    """What no scenario here expects has a test that plants it; a new scenario's kind has to move to the twins."""
    files = sorted((HOUSE / "scenarios").rglob("*.yaml"))
    shown = {kind for path in files for kind in shipped(path).verdict.kinds}
    assert shown == {*TWINS}
    parts = sections(FINDINGS)
    assert {kind for kind in Kind if "**Pairs.**" in parts[kind.value]} == {*TWINS}
    for kind in {*Kind} - {*TWINS}:
        planted = LINK.search(parts[kind.value].partition("**Planted**")[2])
        assert planted is not None and planted[1].startswith("../tests/"), kind


@pytest.mark.parametrize("kind", TWINS)
def test_a_twin_has_the_finding_and_the_other_one_holds(kind: Kind) -> None:
    twins = sections(FINDINGS)[kind.value].partition("**Pairs.**")[2]
    linked = [shipped((DOCS / name).resolve()) for name, _ in LINK.findall(twins) if name.endswith(".yaml")]
    words = [scenario.verdict.word for scenario in linked]
    assert words == [Word.VIOLATED, Word.HELD] * (len(words) // 2) and words
    assert all(kind in scenario.verdict.kinds for scenario in linked if scenario.verdict.word is Word.VIOLATED)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings, and those that the page names itself."""
    text = page.read_text(encoding="utf-8")
    heads = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    named = re.findall(r'<a id="([^"]*)"></a>', text)
    return {*named, *(re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOUSE)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for name, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        if name.startswith(("http:", "https:")):
            continue
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(f"{name}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "DECISIONS.md"])
def test_files_that_a_page_names_are_there(name: str) -> None:
    named = FILE.findall((HOUSE / name).read_text(encoding="utf-8"))
    assert [each for each in named if not (HOUSE / each).exists() and "NAME" not in each] == []


def test_a_contributor_reads_one_screen() -> None:
    assert (HOUSE / "CONTRIBUTING.md").read_text(encoding="utf-8").count("\n") <= 50


def test_decisions_are_short() -> None:
    assert (HOUSE / "DECISIONS.md").read_text(encoding="utf-8").count("\n") <= 300


def terms() -> set[str]:
    """What the glossary explains: the words of its first column, and those in italics beside them."""
    return {each.strip("*").lower() for each in re.findall(r"\*\*[^*]+\*\*|(?<!\*)\*[^*]+\*(?!\*)", GLOSSARY)}


@pytest.mark.parametrize("named", [Word, Kind, CrashPoint, Harm, Guarantee], ids=lambda named: named.__name__)
def test_words_that_a_verdict_uses_are_in_the_glossary(named: type) -> None:
    told = GLOSSARY.lower()
    assert [each.value for each in named if each.value.lower() not in told] == []  # type: ignore[attr-defined]


def test_the_places_of_an_injection_are_in_the_glossary() -> None:
    assert {EARLY, PLANNED, WRITING, WRITTEN, COMMITTED, RECEIVED} <= terms()


ENGLISH = """
a again all and any as at before better by can change changed checked column copies data details did differs does done
end everything file from had has have how in is it its least limits made many missing more no nobody not of on
onceproof or part reasons s says seconds side stood system tell test tested than the them then this timeline to too
under used was were what when where which why with without work worked yet
"""
"""Words that need no explanation."""
PLAIN = frozenset(ENGLISH.split())


def test_the_words_of_the_page_s_headings_are_in_the_glossary() -> None:
    heads = re.findall(r"<(?:h[234]|th|dt|summary)[^>]*>(.*?)</(?:h[234]|th|dt|summary)>", PAGE)
    plain = [re.sub(r"\{[{%].*?[%}]\}|<[^>]*>", " ", head).lower() for head in heads]
    words = {word for head in plain for word in re.findall(r"[a-z]+(?:-[a-z]+)*", head)} - PLAIN
    explained = {word for term in terms() for word in re.findall(r"[a-z]+(?:-[a-z]+)*", term)}
    known = explained | {f"{word}s" for word in explained} | {f"{word}es" for word in explained}
    assert len(words) > 20
    assert words - known == set()


def test_the_scenario_of_the_readme_is_valid_and_its_program_parses(tmp_path: Path) -> None:
    text = (HOUSE / "README.md").read_text(encoding="utf-8")
    for language, place in (("python", "jobs/orders.py"), ("yaml", "scenarios/orders.yaml")):
        (block,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        (tmp_path / place).parent.mkdir()
        (tmp_path / place).write_text(block, encoding="utf-8")
    compile((tmp_path / "jobs" / "orders.py").read_text(encoding="utf-8"), "orders.py", "exec")
    assert load(tmp_path / "scenarios" / "orders.yaml").crash_points == ("all",)


def test_the_first_command_stands_on_the_first_screen() -> None:
    lines = (HOUSE / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines.index("make prove") < 40
