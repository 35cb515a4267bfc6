"""What the machine that runs a suite is told: shards, JUnit, SARIF, GitHub's annotations and step summary."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError, Mistake, UsageError
from harness.fields.shards import Shard
from harness.report import render, summary
from harness.report.ci import github, junit, markdown, places, run_text, sarif
from harness.report.page import build as page_of
from harness.report.summary import Run, error
from harness.run_folder.store import RunFolder
from harness.scenario import Kind, Word
from harness.suite import report
from tests import sample_runs as sample

NASTY = "a|b](http://x)<img src=x onerror=1>\n::error::x %0A \x1b[31m\u202e`@here` www.example.org ##[error]x"
PATHS = st.lists(st.text("ab/._-ä", min_size=1, max_size=6), max_size=40)


def failed(**changes: Any) -> Run:
    parts: dict[str, Any] = {
        "scenario": NASTY,
        "verdict": sample.verdict(),
        "file": "scenarios/a b.yaml",
        "seed": 7,
        "seconds": 1.5,
    }
    return Run(**(parts | changes))


@given(PATHS, st.integers(1, 12), st.randoms())
def test_shards_are_disjoint_cover_all_and_do_not_depend_on_the_order(names: list[str], of: int, random: Any) -> None:
    shuffled = names[:]
    random.shuffle(shuffled)
    parts = [Shard(number, of).pick(names, Path) for number in range(1, of + 1)]
    again = [Shard(number, of).pick(shuffled, Path) for number in range(1, of + 1)]
    assert [sorted(part) for part in parts] == [sorted(part) for part in again]
    assert sorted(name for part in parts for name in part) == sorted(names)
    sets = [{Path(name) for name in part} for part in parts]
    assert sum(map(len, sets)) == len(set().union(*sets))
    assert max(map(len, sets)) - min(map(len, sets)) <= 1


@pytest.mark.parametrize("text", ["", "1", "0/1", "2/1", "1/0", "1/2/3", "1.0/2", "x/y", "-1/2", "1/1 "])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Shard.parse(text, "--shard")
    assert Shard.parse("2/3", "--shard") == Shard(2, 3)


def undone(text: str) -> str:
    """As a runner reads the data of a command."""
    return text.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")


@given(st.text(), st.text())
def test_a_command_is_one_line_that_the_runner_reads_back(text: str, title: str) -> None:
    line = github.command("error", text, title=title, line=3)
    assert "\n" not in line and "\r" not in line
    found = re.fullmatch(r"::error title=([^,:]*),line=3::(.*)", line, re.DOTALL)
    assert found is not None
    assert undone(found[2]) == text
    assert undone(found[1].replace("%3A", ":").replace("%2C", ",")) == title


def test_an_annotation_is_on_the_line_that_says_what_is_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path.parent))
    Path("a.yaml").write_text("# verdict: x\nname: a\nsink:\n  verdict: y\nverdict: held\n")
    Path("b.yaml").write_text("# b\nname: a\n")
    Path("c.yaml").write_bytes(b"\xff\x00")
    assert [places.line(f"{name}.yaml") for name in "abcd"] == [5, 2, 1, 1]
    line = github.of_run(failed(file="a.yaml"))
    assert line.startswith(f"::error file={tmp_path.name}/a.yaml,line=5,title=VIOLATED")
    assert line.endswith("again:  onceproof run a.yaml --seed 7")
    assert len(github.of_run(failed(verdict=sample.verdict(reasons=("x" * 9000,) * 9)))) < 3 * github.MOST_CHARACTERS


def test_github_shows_ten_errors_so_the_tenth_counts_the_rest() -> None:
    assert github.of_runs([failed(verdict=sample.held())]) == []
    assert len(github.of_runs([failed()] * 10)) == 10
    many = github.of_runs([failed()] * 30)
    assert (len(many), many[-1]) == (10, "::error::and 21 more runs that are not as expected")
    (mistake,) = github.of_mistakes([Mistake("a.yaml", 3, 7, "100% wrong")])
    assert mistake.endswith("a.yaml,line=3,col=7::100%25 wrong")


def test_nothing_is_said_where_github_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (github.ACTIONS, github.SUMMARY):
        monkeypatch.delenv(name, raising=False)
    with github.no_commands():
        github.annotate([failed()])
    assert capsys.readouterr().out == ""
    monkeypatch.setenv(github.ACTIONS, "true")
    monkeypatch.setenv(github.SUMMARY, str(tmp_path / "none" / "step.md"))
    with github.no_commands():
        print("::error::of the data")
    github.annotate([failed()])
    first, data, _, last, *rest = capsys.readouterr().out.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert (data, last, len(rest)) == ("::error::of the data", f"::{token}::", 1)


def test_a_step_summary_shows_data_as_text_and_ends_at_its_limit(tmp_path: Path) -> None:
    text = markdown.summary([failed(verdict=sample.held(), scenario="good"), failed()])
    assert text.index("violated") < text.index("good")
    assert "2 runs: 1 as expected, 1 not (1 violated); exit code 1" in text
    assert "Repeat it: <code>onceproof run scenarios&#47;a b&#46;yaml" not in text  # quoted for a shell
    plain = re.sub(r"</?code>|&#[0-9]+;", "", text)
    assert not [sign for sign in ("<", "](", "`", "@", "www.", "\x1b", "\u202e") if sign in plain]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {len(markdown.HEADS) + 1}
    large = markdown.summary([failed()] * 5000)
    assert 200_000 < len(large.encode()) <= markdown.MOST_BYTES
    assert large.endswith(markdown.LEFT_OUT)
    step = tmp_path / "step.md"
    step.write_text("x" * (github.SUMMARY_BYTES - 700))
    github.append(step, [failed()] * 50)
    github.append(step, [failed()] * 50)
    assert step.stat().st_size <= github.SUMMARY_BYTES


def test_junit_has_a_case_for_each_run_with_what_it_says() -> None:
    runs = [failed(), failed(verdict=sample.held()), failed(verdict=error("it\x00failed"), file="", seed=None)]
    root = ElementTree.fromstring(junit.text(runs))
    (suite,) = root
    assert [suite.get(name) for name in ("tests", "failures", "errors", "time")] == ["3", "1", "1", "4.500"]
    first, second, third = suite.findall("testcase")
    assert (first.get("classname"), first.get("file")) == ("scenarios.a b", "scenarios/a b.yaml")
    found = {each.get("name"): each.get("value") for each in first.iter("property")}
    assert (found["verdict"], found["exit_code"], found["seed"]) == ("violated", "1", "7")
    failure = first.find("failure")
    assert failure is not None and failure.get("type") == "violated"
    assert str(failure.text).endswith("again:  onceproof run 'scenarios/a b.yaml' --seed 7")
    assert [case.find("failure") is None and case.find("error") is None for case in (second, third)] == [True, False]
    assert third.find("error") is not None


def test_the_junit_of_an_earlier_suite_is_nobodys(tmp_path: Path) -> None:
    path = tmp_path / "out" / "junit.xml"
    junit.begin(path)
    junit.write(path, [failed()])
    junit.begin(path)
    assert not path.exists()
    with pytest.raises(HarnessError, match="could not write"):
        junit.begin(tmp_path)


@given(st.text())
def test_junit_can_be_read_whatever_the_data_holds(text: str) -> None:
    verdict = sample.verdict(reasons=(text,), steps=(), findings=(), word=Word.UNTESTED)
    (case,) = ElementTree.fromstring(junit.text([failed(scenario=text, verdict=verdict)])).iter("testcase")
    assert case.find("failure") is not None


def test_sarif_has_one_result_for_each_kind_in_each_sink() -> None:
    many = [sample.duplicated(number) for number in range(500)]
    runs = [failed(verdict=sample.verdict(findings=(*many, sample.lost()))), failed(verdict=sample.held())]
    document = json.loads(json.dumps(sarif.document(runs)))
    (log,) = document["runs"]
    assert (document["version"], log["invocations"]) == ("2.1.0", [{"executionSuccessful": True}])
    assert [each["ruleId"] for each in log["results"]] == ["duplicated", "lost"]
    assert "500 rows duplicated in postgres payments" in log["results"][0]["message"]["text"]
    for result in log["results"]:
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert unquote(place["artifactLocation"]["uri"]) == "scenarios/a b.yaml" and place["region"]["startLine"] == 1
    rules = [rule["id"] for rule in log["tool"]["driver"]["rules"]]
    assert sorted(rules) == sorted({*(kind.replace(" ", "-") for kind in Kind if kind is not Kind.RECOVERED), *Word})
    prints = [each["partialFingerprints"]["onceproof/v1"] for each in log["results"]]
    fewer = sarif.document([failed(verdict=sample.verdict(findings=(many[3], sample.lost())), seed=9)])["runs"][0]
    assert [each["partialFingerprints"]["onceproof/v1"] for each in fewer["results"]] == prints
    assert len(set(prints)) == 2


def test_what_was_only_counted_counts() -> None:
    many = [sample.duplicated(number) for number in range(1000)]
    counts = {"duplicated": 100_000}
    run = failed(verdict=sample.verdict(findings=(*many, sample.lost()), counts=counts))
    twice, lost = (each["message"]["text"] for each in sarif.document([run])["runs"][0]["results"])
    assert twice.startswith("VIOLATED (100,000 duplicated, 1 lost)")
    assert "100,000 findings, the first 1,000 of them 1,000 rows duplicated in postgres payments" in twice
    assert "1 row lost in postgres payments" in lost
    text = re.sub("&#([0-9]+);", lambda sign: chr(int(sign[1])), markdown.summary([run]))
    assert "| 100,000 duplicated, 1 lost |" in text
    assert "and 99,998 more findings (the run folder has the first 1,000 of 100,000 duplicated)" in text
    assert summary.entry(run)["findings"] == {"duplicated": 100_000, "lost": 1}
    assert summary.entry(summary.brief(run))["findings"] == {"duplicated": 100_000, "lost": 1}
    other = replace(many[0], position=1, sink="postgres other")
    two = failed(verdict=sample.verdict(findings=(*many, other), counts=counts))
    told = [each["message"]["text"] for each in sarif.document([two])["runs"][0]["results"]]
    assert "at least 1,000 rows duplicated in postgres payments" in told[0]


@pytest.mark.parametrize("word", [Word.INCONCLUSIVE, Word.UNTESTED, Word.ERROR, Word.HELD])
def test_sarif_has_a_run_without_the_answer_too(word: Word) -> None:
    run = failed(verdict=sample.verdict(word=word, findings=(), reasons=()))
    (result,) = sarif.document([run])["runs"][0]["results"]
    assert result["ruleId"] == word.value


def test_report_writes_sarif_and_an_unread_run_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = sample.stored(tmp_path, sample.verdict())
    assert report([folder.path, tmp_path / "none"], tmp_path / "out" / "all.sarif") != 0
    (log,) = json.loads((tmp_path / "out" / "all.sarif").read_text())["runs"]
    assert log["invocations"][0]["executionSuccessful"] is False
    assert len(log["invocations"][0]["toolExecutionNotifications"]) >= 1


EXTERNAL = "--stack external --at kafka=k:9092 --at postgres=p:5432 --spark-master spark://s:7077"


@pytest.mark.slow
@pytest.mark.parametrize("stack", ["", "--stack containers", EXTERNAL])
@pytest.mark.parametrize("line", ["", "--spark 3.5 "])
@pytest.mark.parametrize("word", list(Word))
def test_the_command_that_repeats_a_stored_run_is_the_page_s(tmp_path: Path, stack: str, line: str, word: Word) -> None:
    verdict = sample.verdict(word=word, findings=(), reasons=("it failed",))
    folder = sample.stored(tmp_path, verdict)
    run = json.loads(folder.run_json.read_text())
    command = f"onceproof run scenarios/append.yaml --seed 7 {line}{stack}".strip()
    asked = {"path": "scenarios/append.yaml", "stack": {"options": stack}, "command": command}
    folder.run_json.write_text(json.dumps(run | asked))
    shown = render.parts(RunFolder.open(folder.path))
    page = page_of(shown)["again"][0][0].replace(shown.folder, str(folder.path))
    stored = Run.read(folder.path)
    assert run_text.command(stored) == page
    assert run_text.failure(stored).splitlines()[-1] == f"again:  {page}"
    assert stack in page
    (case,) = ElementTree.fromstring(junit.text([stored])).iter("testcase")
    assert str((case.find("failure") if word is not Word.ERROR else case.find("error")).text).endswith(page)  # type: ignore[union-attr]
    if word is Word.ERROR:
        assert page == command


def test_without_a_run_folder_the_reader_names_the_cluster() -> None:
    command = run_text.command(failed(stack="external"))
    assert command.endswith(" --seed 7 --stack external --spark-master URL --at NAME=ADDRESS")


def test_the_command_that_repeats_a_run() -> None:
    assert (
        run_text.command(failed(stack="containers")) == "onceproof run 'scenarios/a b.yaml' --seed 7 --stack containers"
    )
    assert run_text.command(failed(folder=Path("r/1 2"))) == "onceproof replay 'r/1 2'"
    assert run_text.command(failed(file="")) == ""
