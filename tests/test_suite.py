"""What the command line says of stored runs, and of one that failed."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from harness import suite
from harness.errors import HarnessError, OwnCodeError, SetupError, StackError, UsageError
from harness.judge import Judged
from harness.report import render, summary
from harness.report.summary import Run, error
from harness.run.last_words import tail
from harness.run.loop import Result
from harness.run_folder import digests
from harness.run_folder.store import RunFolder, digest
from harness.scenario import Scenario, Word, plain
from harness.sinks.table import save
from harness.suite import side_by_side
from harness.suite.options import Options
from harness.suite.suite_stack import open_stack
from harness.wait import until
from tests import sample_runs as sample
from tests.folders import SCENARIO, Folder, payments


@pytest.fixture
def stored(held_run: RunFolder) -> RunFolder:
    """A run that held, as the loop leaves it."""
    return held_run


def test_check_of_an_untouched_run_says_the_same(stored: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite.check(stored.path) == 0
    said = capsys.readouterr()
    assert said.out.startswith("HELD, expected held: by hand")
    assert "the run itself had said" not in said.out
    assert said.err == ""


def test_check_says_where_the_run_itself_had_said_otherwise(
    stored: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an older version would have, whose judge saw less."""
    stored.verdict_json.write_text(stored.verdict_json.read_text().replace('"held"', '"untested"', 1))
    digests.write(stored.path)
    assert suite.check(stored.path) == 0
    assert "the run itself had said: UNTESTED" in capsys.readouterr().out


def test_check_of_an_error_repeats_the_scenario_and_not_the_plan(
    stored: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = json.loads(stored.run_json.read_text())
    command = "onceproof run scenarios/a.yaml --seed 7 --stack containers"
    told = {"path": "scenarios/a.yaml", "seed": 7, "stack": {"options": "--stack containers"}, "command": command}
    stored.run_json.write_text(json.dumps(run | told))
    digests.write(stored.path)
    monkeypatch.setattr("harness.judge.judged", lambda folder: Judged(error("`expected` is no query")))
    assert suite.check(stored.path) == 4
    assert f"again:  {command}" in capsys.readouterr().out.splitlines()


def test_check_names_what_was_altered_and_judges_nothing(stored: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    made = Folder(stored.path)
    save(stored.path, 0, made._table(0, payments(made.records[1:])))
    stored.history.unlink()
    (stored.path / "snapshots" / "0-injection.json").write_text("{}")
    with pytest.raises(HarnessError) as refusal:
        suite.check(stored.path)
    assert (refusal.value.exit_code, capsys.readouterr()) == (4, ("", ""))
    assert str(refusal.value).splitlines() == [
        f"asked for the run in {stored.path}; 4 files in it are not as the run left them, so nothing is said of it:",
        "  history.jsonl: missing",
        "  sink/0.json: altered",
        "  sink/0.parquet: altered",
        "  snapshots/0-injection.json: not of the run",
        f"Put back a copy of the folder as the run left it, or run its plan again (onceproof replay {stored.path})",
    ]


@pytest.mark.parametrize("verb", ["check", "report"])
def test_a_verdict_that_was_forged_is_neither_judged_nor_shown(
    stored: RunFolder, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored.verdict_json.write_text(stored.verdict_json.read_text().replace('"held"', '"untested"'))
    with pytest.raises(HarnessError, match=r"1 file in it is not as the run left it(?s:.)*verdict\.json: altered"):
        suite.check(stored.path) if verb == "check" else suite.report([stored.path])
    assert capsys.readouterr().out == ""
    assert not stored.report_html.exists()


def test_report_writes_the_pages_of_the_runs_that_are_whole(
    stored: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torn = shutil.copytree(stored.path, tmp_path / "torn")
    (torn / "history.jsonl").unlink()
    failed = RunFolder.create(tmp_path, "by hand", "r1", need_bytes=0)
    failed.save(0, run={"scenario": "by hand", "outcome": {"error": "no such module"}})
    assert suite.report([torn, stored.path, failed.path]) == 4
    said = capsys.readouterr()
    assert said.out.splitlines() == [str(stored.report_html), str(failed.report_html)]
    assert f"Error: asked for the run in {torn}" in said.err and "history.jsonl: missing" in said.err
    assert not (torn / "report.html").exists()
    # The page is written after the digests, and a run with a page is as whole as before.
    assert suite.check(stored.path) == 0


def test_check_of_a_run_that_ended_early_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = RunFolder.create(tmp_path, "by hand", "r1", need_bytes=0)
    failed.save(0, run={"scenario": "by hand"})
    with pytest.raises(HarnessError, match="ended before it had a verdict: it was interrupted, or is not over"):
        suite.check(failed.path)
    failed.save(1, run={"outcome": {"error": "no such module"}})
    with pytest.raises(HarnessError, match="the run ended before it had a verdict: no such module") as refusal:
        suite.check(failed.path)
    assert (refusal.value.exit_code, capsys.readouterr().out) == (4, "")


def test_a_replay_looks_at_the_plan_alone(stored: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "run_all", lambda work, options: 0)
    for path in (stored.verdict_json, stored.history):
        path.write_text("{")
    assert suite.replay(stored.path, Options()) == 0
    plan = (stored.path / "plan.json").read_text()
    (stored.path / "plan.json").write_text(plan.replace('"kill driver"', '"pause driver"'))
    with pytest.raises(HarnessError, match=r"plan\.json: altered\n.*run the scenario again"):
        suite.replay(stored.path, Options())


@pytest.mark.parametrize("parts", [{}, {"plan": {}}, {"plan": {"scenario": plain(SCENARIO)}, "run": {"seed": "x"}}])
def test_a_replay_of_a_run_without_a_plan_is_a_clear_error(tmp_path: Path, parts: dict[str, Any]) -> None:
    failed = RunFolder.create(tmp_path, "by hand", "r1", need_bytes=0)
    failed.save(0, **parts)
    with pytest.raises(UsageError, match="it has no whole plan"):
        suite.replay(failed.path, Options())


def test_a_replay_says_that_the_program_or_the_file_has_changed(
    stored: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(suite, "run_all", lambda work, options: 0)
    file, program = tmp_path / "s.yaml", tmp_path / "p.py"
    file.write_text("name: s\n")
    program.write_text("pass\n")
    plan = {"scenario": {**plain(SCENARIO), "path": str(file)}}
    entry = {"entry": str(program), "sha256": digest(program)}
    stored.save(2, plan=plan, scenario="name: s\n", run={"seed": 3, "program": entry})
    digests.write(stored.path)
    assert (suite.replay(stored.path, Options()), capsys.readouterr().err) == (0, "")
    file.unlink()
    program.write_text("import os\n")
    assert suite.replay(stored.path, Options()) == 0
    said = "is not what it was in the stored run; the plan is the stored one"
    assert capsys.readouterr().err.splitlines() == [f"{file} {said}", f"{program} {said}"]


def test_a_run_that_failed_keeps_its_folder_its_time_and_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder.create(tmp_path, "by hand", "r1")
    folder.save(0, run={"scenario": "by hand", "outcome": {"error": "no such module"}})

    def fail(*given: Any, **named: Any) -> None:
        failure = SetupError("no such module")
        failure.folder = folder.path
        raise failure

    monkeypatch.setattr(suite, "run_one", fail)
    stack: Any = SimpleNamespace(name="processes")
    done = suite.one(SCENARIO, stack, options=Options(reports=tmp_path), listener=lambda event: None)
    assert (done.verdict.word, done.verdict.reasons, done.folder) == (Word.ERROR, ("no such module",), folder.path)
    assert done.seconds > 0
    assert "no such module" in folder.report_html.read_text()
    assert render.index(tmp_path, [done]).is_file()
    assert json.loads(folder.run_json.read_text())["stage"] == 0


def test_ci_is_told_of_each_run_once_and_how_to_repeat_one_whose_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_one(scenario: Scenario, stack: Any, *, reports: Path, **rest: Any) -> Result:
        verdict = sample.held() if scenario.name == "a" else sample.verdict(word=Word.UNTESTED, reasons=("::error::x",))
        return Result(verdict=verdict, folder=sample.stored(reports, verdict, run_id=scenario.name).path, seconds=1.0)

    stack: Any = SimpleNamespace(name="processes", health=lambda: None)
    monkeypatch.setattr(suite, "run_one", run_one)
    monkeypatch.setattr(suite, "stack_of", lambda options, work: stack)
    monkeypatch.setattr(suite, "up", nullcontext)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.md")
    work = [replace(SCENARIO, name=name, path=f"scenarios/{name}.yaml") for name in "ab"]
    options = Options(reports=tmp_path / "r", jobs=1, seed=5, keep="none", junit=tmp_path / "out" / "junit.xml")
    assert suite.run_all(work, options) == 3
    out = capsys.readouterr().out
    fence = out.partition("::stop-commands::")[2].partition("\n")[0]
    fenced, _, after = out.partition(f"::stop-commands::{fence}\n")[2].partition(f"\n::{fence}::\n")
    assert "because: ::error::x" in fenced
    (line,) = after.splitlines()
    assert line.startswith("::error file=scenarios/b.yaml,line=1,title=UNTESTED")
    assert line.endswith("again:  onceproof run scenarios/b.yaml --seed 5")
    assert Path("step.md").read_text().count("## Onceproof\n") == 1
    (tests,) = ElementTree.parse("out/junit.xml").getroot()
    assert [tests.get(name) for name in ("tests", "failures", "errors")] == ["2", "1", "0"]
    data = json.loads((tmp_path / "r" / "latest" / "summary.json").read_text())
    assert [(run["file"], run["seed"], run["exit_code"]) for run in data["runs"]] == [
        ("scenarios/a.yaml", 5, 0),
        ("scenarios/b.yaml", 5, 3),
    ]
    assert data["exit_code"] == 3


def test_code_of_the_users_own_that_fails_ends_its_own_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_one(scenario: Scenario, stack: Any, *, reports: Path, **rest: Any) -> Result:
        if scenario.name == "a":
            raise OwnCodeError("asked readers:rows for its rows; it raised OSError")
        return Result(verdict=sample.held(), folder=sample.stored(reports, sample.held()).path, seconds=1.0)

    stack: Any = SimpleNamespace(name="processes", health=lambda: None)
    monkeypatch.setattr(suite, "run_one", run_one)
    monkeypatch.setattr(suite, "stack_of", lambda options, work: stack)
    monkeypatch.setattr(suite, "up", nullcontext)
    work = [replace(SCENARIO, name=name) for name in "ab"]
    assert suite.run_all(work, Options(reports=tmp_path, jobs=1)) == 4
    summary = json.loads((tmp_path / "latest" / "summary.json").read_text())
    assert [(each["scenario"], each["verdict"]) for each in summary["runs"]] == [("a", "error"), ("b", "held")]


def test_a_suite_that_fails_at_its_end_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_one(scenario: Scenario, stack: Any, *, reports: Path, **rest: Any) -> Result:
        return Result(verdict=sample.held(), folder=sample.stored(reports, sample.held()).path, seconds=1.0)

    @contextmanager
    def up(stack: Any) -> Iterator[None]:
        yield
        raise StackError("the broker did not end")

    stack: Any = SimpleNamespace(name="processes", health=lambda: None)
    monkeypatch.setattr(suite, "run_one", run_one)
    monkeypatch.setattr(suite, "stack_of", lambda options, work: stack)
    monkeypatch.setattr(suite, "up", up)
    with pytest.raises(StackError, match="did not end"):
        suite.run_all([replace(SCENARIO, name="a")], Options(reports=tmp_path, jobs=1))
    summary = json.loads((tmp_path / "latest" / "summary.json").read_text())
    assert [each["scenario"] for each in summary["runs"]] == ["a", "the end of the suite"]
    assert summary["exit_code"] == 4


def failed(**changes: Any) -> Run:
    return Run(scenario="by hand", verdict=sample.verdict(**changes), stack="processes")


def test_a_violation_with_others_beside_it_names_what_they_share_and_stays_one() -> None:
    alone = failed(notes=("one",))
    beside = suite.shared(alone)
    assert beside.verdict.notes == ("one", suite.BESIDE)
    assert replace(beside, verdict=replace(beside.verdict, notes=("one",))) == alone
    assert suite.BESIDE in summary.entry(beside)["notes"]


@pytest.mark.parametrize(
    "run",
    [failed(as_expected=True), replace(failed(), verdict=sample.held()), failed(word=Word.INCONCLUSIVE)],
    ids=["expected", "held", "unknown"],
)
def test_nothing_is_said_of_others_where_they_can_be_no_cause(run: Run) -> None:
    assert suite.shared(run) is run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("played", "noted"), [(("ab", 2, ""), "ab"), (("ab", 1, ""), ""), (("a", 2, ""), ""), (("ab", 2, "b"), "a")]
)
def test_who_had_others_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: tuple[str, int, str], noted: str
) -> None:
    """Not the only run, not one at a time, and not one that strikes what others use too."""
    names, jobs, alone = played

    def run_one(scenario: Scenario, stack: Any, *, reports: Path, **rest: Any) -> Result:
        folder = sample.stored(reports, sample.verdict(), run_id=scenario.name)
        return Result(verdict=sample.verdict(), folder=folder.path, seconds=1.0)

    stack: Any = SimpleNamespace(name="processes", health=lambda: None)
    monkeypatch.setattr(suite, "run_one", run_one)
    monkeypatch.setattr(suite, "stack_of", lambda options, work: stack)
    monkeypatch.setattr(suite, "up", nullcontext)
    for place in (suite, side_by_side):
        monkeypatch.setattr(place, "alone", lambda scenario: scenario.name in [*alone])
    work = [replace(SCENARIO, name=name) for name in names]
    assert suite.run_all(work, Options(reports=tmp_path, jobs=jobs)) == 1
    told = json.loads((tmp_path / "latest" / "summary.json").read_text())
    assert "".join(each["scenario"] for each in told["runs"] if suite.BESIDE in each["notes"]) == noted


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_suite_that_is_cut_short_has_shown_what_was_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], jobs: int
) -> None:
    """With two jobs the third run is ended at its next wait, and the fourth never begins."""
    over, begun = threading.Event(), list[str]()

    def run_one(scenario: Scenario, stack: Any, *, reports: Path, **rest: Any) -> Result:
        begun.append(scenario.name)
        if scenario.name == "b":
            until("all to be as said", lambda: over.is_set() and len(begun) == jobs + 1, within_s=120.0)
            raise StackError("the broker died")
        if scenario.name == "c":
            until("for ever", lambda: False, within_s=120.0)
        return Result(verdict=sample.held(), folder=sample.stored(reports, sample.held()).path, seconds=1.0)

    class Shown:
        """Tells when a run is over."""

        def started(self, scenario: str, **rest: Any) -> Any:
            return lambda event: None

        def ended(self, number: int, run: Run) -> None:
            over.set()

        def close(self) -> None: ...

    stack: Any = SimpleNamespace(name="processes", health=lambda: None)
    monkeypatch.setattr(suite, "run_one", run_one)
    monkeypatch.setattr(suite, "stack_of", lambda options, work: stack)
    monkeypatch.setattr(suite, "up", nullcontext)
    monkeypatch.setattr("harness.suite.progress.progress", lambda **rest: Shown())
    work = [replace(SCENARIO, name=name) for name in "abcd"]
    with pytest.raises(StackError, match="the broker died"):
        suite.run_all(work, Options(reports=tmp_path, jobs=jobs, junit=tmp_path / "junit.xml"))
    cases = [each.get("name") for each in ElementTree.parse(tmp_path / "junit.xml").iter("testcase")]
    assert cases == ["a", "b", "c", "d"]
    assert sorted(begun) == ["a", "b", "c"][: jobs + 1]
    summary = json.loads((tmp_path / "latest" / "summary.json").read_text())
    told = [(each["scenario"], each["verdict"], each["reasons"]) for each in summary["runs"]]
    lost = ["it was not judged: the broker died"]
    assert (told[0][:2], told[1:]) == (("a", "held"), [(name, "error", lost) for name in "bcd"])
    assert summary["exit_code"] == 4
    page = (tmp_path / "latest" / "index.html").read_text(encoding="utf-8")
    assert "4 runs: 1 as expected, 3 not (3 error)" in page
    out = capsys.readouterr().out
    assert "1 run: 1 as expected" in out and "not judged: b, c, d" in out
    # It is none of the suites that are over.
    assert not (tmp_path / "latest" / "trend.jsonl").exists()


def test_a_suite_that_is_over_leaves_a_line_and_keeps_what_its_runs_were_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_one(scenario: Scenario, stack: Any, *, reports: Path, **rest: Any) -> Result:
        return Result(verdict=sample.held(), folder=sample.stored(reports, sample.held()).path, seconds=1.0)

    stack: Any = SimpleNamespace(name="processes", health=lambda: None)
    monkeypatch.setattr(suite, "run_one", run_one)
    monkeypatch.setattr(suite, "stack_of", lambda options, work: stack)
    monkeypatch.setattr(suite, "up", nullcontext)
    for _ in range(2):
        # Also of a run whose folder is not kept.
        assert suite.run_all([SCENARIO], Options(reports=tmp_path, jobs=1, keep="none")) == 0
    (entry,) = json.loads((tmp_path / "latest" / "summary.json").read_text())["runs"]
    assert (entry["folder"], entry["about"]["pipeline"]) == (None, "pipelines/append.py")
    assert [name for name, _ in entry["about"]["phases"]] == ["stack up"]
    lines = [json.loads(line) for line in (tmp_path / "latest" / "trend.jsonl").read_text().splitlines()]
    assert [(line["plans"], line["verdicts"], line["exit"]) for line in lines] == [(1, {"held": 1}, 0)] * 2
    page = (tmp_path / "latest" / "index.html").read_text()
    assert page.count('class="good"') == 2 and "append.py" in page


def test_the_end_of_a_log_names_the_log_and_an_error_that_stands_higher_up(tmp_path: Path) -> None:
    log = tmp_path / "driver-1.log"
    assert tail(log) == "(no log)"
    log.write_text("first\nValueError: early\nspark.errors.AnalysisException: no column\n" + "WARN later\n" * 3)
    assert tail(log, 4) == f"logs/driver-1.log:\n{log.read_text().split(maxsplit=3)[3].strip()}"
    assert tail(log, 2) == "logs/driver-1.log:\nspark.errors.AnalysisException: no column\n…\nWARN later\nWARN later"
    log.write_text("nothing went wrong\n" * 3)
    assert tail(log, 1) == "logs/driver-1.log:\nnothing went wrong"


def test_of_a_program_that_failed_inside_spark_the_end_of_the_log_names_its_own_error(tmp_path: Path) -> None:
    log = tmp_path / "driver-1.log"
    inner = [
        "Traceback (most recent call last):",
        '  File "p.py", line 3, in save',
        "    execute(rows)",
        "UndefinedColumn: x",
    ]
    outer = ["pyspark.errors.StreamingQueryException: [STREAM_FAILED] " + inner[0], *inner[1:], "SQLSTATE: 39000"]
    log.write_text("\n".join([*inner, *outer, "== Plan ==", "Project [id]", "Scan"]))
    assert tail(log, 3) == "logs/driver-1.log:\nUndefinedColumn: x\n…\n== Plan ==\nProject [id]\nScan"
    assert tail(log, 5).splitlines()[1:] == [
        "UndefinedColumn: x",
        "SQLSTATE: 39000",
        "== Plan ==",
        "Project [id]",
        "Scan",
    ]


@pytest.mark.parametrize("package", ["docker", "testcontainers"])
def test_a_package_that_containers_need_is_named(package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StackError, match=rf"no Python package {package}; pip install 'onceproof\[containers\]'"):
        open_stack("containers", tmp_path)
    assert StackError.exit_code == 4
