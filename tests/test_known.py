"""A known failure: shown apart by `run`, pytest and CI until its day, where it is that failure and no other one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import suite
from harness.errors import SetupError
from harness.judge import Judged
from harness.load import dump, load
from harness.report import summary, table
from harness.report.ci import github, junit, markdown, sarif
from harness.report.many.about import About
from harness.report.many.gather import gather
from harness.report.summary import Run, error
from harness.run import loop
from harness.run_folder import digests
from harness.scenario import Kind, Known, Scenario, Verdict, Word, plain
from harness.suite.options import Options
from tests import sample_runs as sample
from tests.strategies import project
from tests.test_plugin import World, run, world
from tests.test_plugin import project as projects

__all__ = ["projects", "world"]

pytest_plugins = ["pytester"]

ISSUE = "https://example.org/issues/7"
KINDS = ("duplicated", "corrupted", "lost")
FILE = """\
name: a regression
pipeline: pipelines/append.py
sink:
  - postgres: payments
    expected: select id, account, amount from ledger
    key: [id]
schedule:
  - {when: {point: sink-committed, batch: 3}, do: kill driver}
known: {issue: "https://example.org/issues/7", until: 9999-12-31, violated: [duplicated, corrupted, lost]}
"""
OVER = FILE.replace("9999-12-31", "2000-01-01")
FEWER = FILE.replace("duplicated, corrupted, lost", "duplicated, lost")
BARE = FILE.replace(", violated: [duplicated, corrupted, lost]", "")


def violated(**changes: Any) -> Run:
    """A run of a scenario with that failure as a known one, on the last day."""
    known = Known(issue=ISSUE, until="2026-12-31", violated=KINDS)
    about = About(started="2026-12-31T23:59:59Z", known=replace(known, **changes.pop("known", {})))
    return replace(Run(scenario="a", verdict=sample.verdict(), file="a.yaml", about=about), **changes)


def test_a_known_failure_does_not_decide_the_exit_code_until_its_day() -> None:
    run = violated()
    assert (run.known, run.wrong, summary.exit_code([run])) == (ISSUE, False, 0)
    after = replace(run, about=replace(run.about, started="2027-01-01T00:00:00Z"))
    assert (after.known, after.wrong, summary.exit_code([run, after])) == ("", True, 1)
    # Of a run that nobody knows the day of, nobody knows that it is no news.
    assert replace(run, about=replace(run.about, started="")).wrong


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"verdict": error("the stack died")}, 4),
        ({"verdict": sample.verdict(word=Word.ERROR)}, 4),
        ({"verdict": sample.verdict(word=Word.INCONCLUSIVE)}, 3),
        ({"verdict": sample.verdict(word=Word.UNTESTED, findings=())}, 3),
        ({"verdict": sample.verdict(word=Word.HELD, findings=(), expected="violated: lost")}, 1),
        ({"verdict": sample.verdict(findings=())}, 1),
        ({"verdict": sample.verdict(findings=(sample.lost(), replace(sample.lost(), kind=Kind.MISORDERED)))}, 1),
        ({"known": {"violated": ("lost",)}}, 1),
        ({"known": {"violated": ()}}, 1),
        ({"known": {"violated": ("recovered",)}, "verdict": sample.verdict()}, 1),
    ],
)
def test_no_other_failure_is_the_known_one(changes: dict[str, Any], code: int) -> None:
    run = violated(**changes)
    assert (run.known, run.wrong, summary.exit_code([run])) == ("", True, code)
    assert summary.entry(run)["known"] == ""


@given(st.sets(st.sampled_from([*Kind]), min_size=1), st.sets(st.sampled_from([*Kind])), st.sampled_from([*Word]))
def test_a_failure_is_the_known_one_only_if_it_is_violated_and_has_no_kind_of_its_own(
    found: set[Kind], said: set[Kind], word: Word
) -> None:
    verdict = sample.verdict(word=word, findings=tuple(replace(sample.lost(), kind=kind) for kind in found))
    run = violated(verdict=verdict, known={"violated": tuple(said)})
    own = found - {Kind.RECOVERED}
    assert bool(run.known) == (word is Word.VIOLATED and bool(own) and own <= said)


def test_what_came_out_as_expected_is_not_known_to_fail() -> None:
    held = violated(verdict=sample.held())
    assert (held.known, held.wrong) == ("", False)


def test_it_is_shown_apart_everywhere() -> None:
    runs = [violated(), violated(verdict=sample.held())]
    assert table.text(runs).splitlines()[-1] == "2 runs: 1 as expected, 1 known to fail"
    assert [table.mark(each) for each in runs] == ["known", "ok"]
    assert github.of_runs(runs) == []
    text = markdown.summary(runs)
    assert "exit code 0" in text and "Repeat it" not in text and "issues&#47;7" in text
    root = ElementTree.fromstring(junit.text(runs))
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["2", "0", "0", "1"]
    (skipped,) = root.iter("skipped")
    assert ISSUE in str(skipped.get("message"))
    (log,) = sarif.document([violated()])["runs"]
    assert {each["suppressions"][0]["justification"] for each in log["results"]} == {ISSUE}
    (other,) = sarif.document([violated(known={"until": "2026-12-30"})])["runs"]
    assert len(other["results"]) == len(log["results"])
    assert not any("suppressions" in each for each in other["results"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    root = project(tmp_path)
    (tmp_path / "pipelines" / "append.py").write_text("print()\n")
    return root


def test_the_key_is_read_and_written(home: Path) -> None:
    file = home / "a.yaml"
    file.write_text(FILE)
    scenario = load(file)
    assert scenario.known == Known(issue=ISSUE, until="9999-12-31", violated=KINDS)
    file.write_text(dump(scenario))
    assert load(file) == scenario
    file.write_text(BARE)
    assert load(file).known == Known(issue=ISSUE, until="9999-12-31")


def answers(monkeypatch: pytest.MonkeyPatch, verdict: Verdict) -> None:
    """Every run of a suite comes to that."""

    def one(scenario: Scenario, stack: object, *, reports: Path, **rest: Any) -> loop.Result:
        folder = sample.stored(reports, verdict, asked=scenario)
        return loop.Result(verdict=verdict, folder=folder.path, seconds=1.0)

    @contextmanager
    def up(stack: object) -> Iterator[object]:
        yield stack

    stack = SimpleNamespace(name="processes", health=lambda: None)
    monkeypatch.setattr(suite, "run_one", one)
    monkeypatch.setattr(suite, "up", up)
    monkeypatch.setattr(suite, "stack_of", lambda options, work: stack)


@pytest.mark.parametrize(("text", "code"), [(FILE, 0), (OVER, 1), (FEWER, 1), (BARE, 1)])
def test_run_says_it_and_its_exit_code_does_not(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    answers(monkeypatch, sample.verdict())
    file, reports = home / "a.yaml", home / "reports"
    file.write_text(text)
    assert suite.run_all([load(file)], Options(reports=reports, jobs=1)) == code
    said = capsys.readouterr().out
    assert (f"known, {ISSUE}: VIOLATED" in said) == (code == 0)
    assert ("again:  onceproof replay" in said) == (code == 1)
    data = json.loads((reports / "latest" / "summary.json").read_text())
    assert (data["exit_code"], data["runs"][0]["known"]) == (code, "" if code else ISSUE)
    assert data["runs"][0]["as_expected"] is False
    html = (reports / "latest" / "index.html").read_text()
    assert ("1 known to fail" in html, '<section id="wrong">' in html) == (code == 0, code == 1)
    line = json.loads((reports / "latest" / "trend.jsonl").read_text())
    assert (len(line["failed"]), line["exit"]) == (code, code)
    # From the summary alone, on another machine.
    bare = home / "elsewhere"
    bare.mkdir()
    (bare / "summary.json").write_text(json.dumps(data))
    assert [each.wrong for each in gather([bare]).seen] == [code == 1]


def test_a_stored_run_says_the_same_of_itself(home: Path) -> None:
    (home / "a.yaml").write_text(FILE)
    folder = sample.stored(home / "reports", sample.verdict(), asked=load(home / "a.yaml"))
    assert Run.read(folder.path).known == ISSUE
    # A plan that says it in another form says nothing.
    said: Any
    for said in ({}, {"issue": ISSUE}, {"issue": 7, "until": "9999-12-31", "violated": KINDS}, []):
        scenario = {**plain(load(home / "a.yaml")), "known": said}
        folder.save(2, plan={"seed": 7, "scenario": scenario})
        assert Run.read(folder.path).wrong


def test_check_names_the_issue(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "a.yaml").write_text(FILE)
    folder = sample.stored(home / "reports", sample.verdict(), asked=load(home / "a.yaml"))
    digests.write(folder.path)
    monkeypatch.setattr("harness.judge.judged", lambda path: Judged(sample.verdict()))
    assert suite.check(folder.path) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"known: {ISSUE}"


@pytest.mark.parametrize(("what", "known"), [("night", ISSUE), ("suite", "")])
def test_only_a_night_knows_more_of_a_run_than_its_folder(tmp_path: Path, what: str, known: str) -> None:
    folder = sample.stored(tmp_path / "reports", sample.verdict())
    digests.write(folder.path)
    entry = {**summary.entry(Run.read(folder.path)), "known": ISSUE}
    (tmp_path / "summary.json").write_text(json.dumps({"what": what, "runs": [entry]}))
    (seen,) = gather([tmp_path]).seen
    assert (seen.known, seen.wrong) == (known, not known)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words", "outcome"),
    [
        (FILE, [], {"xfailed": 1}),
        (FILE, ["--runxfail"], {"failed": 1}),
        (OVER, [], {"failed": 1}),
        (FEWER, [], {"failed": 1}),
        (BARE, [], {"failed": 1}),
    ],
)
def test_in_pytest_it_is_an_expected_failure(
    pytester: pytest.Pytester,
    projects: Callable[..., Path],
    world: World,
    *,
    text: str,
    words: list[str],
    outcome: dict[str, int],
) -> None:
    projects("scenarios/a.yaml", text=text)
    world.answers["a regression"] = sample.verdict()
    result = run(pytester, "scenarios", "-rx", *words)
    result.assert_outcomes(**outcome)
    known = text == FILE
    codes = [line for line in result.stdout.lines if line.startswith("exit code of onceproof: ")]
    assert [line.split()[4] for line in codes] == ([] if known else ["1"])
    assert ("1 known to fail" in result.stdout.str()) == known
    if "xfailed" in outcome:
        result.stdout.fnmatch_lines([f"*known: {ISSUE}*"])


@pytest.mark.parametrize("answer", [sample.verdict(word=Word.INCONCLUSIVE), SetupError("no such table")])
def test_in_pytest_no_other_failure_is_excused(
    pytester: pytest.Pytester, projects: Callable[..., Path], world: World, answer: Any
) -> None:
    projects("scenarios/a.yaml", text=FILE)
    world.answers["a regression"] = answer
    run(pytester, "scenarios").assert_outcomes(failed=1)
