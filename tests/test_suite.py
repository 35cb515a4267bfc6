"""What the command line says of stored runs, and of one that failed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness import suite
from harness.errors import SetupError, StackError
from harness.judge import judge
from harness.report import html
from harness.run.supervisor import tail
from harness.scenario import Word, plain
from harness.sinks import save
from harness.store import RunFolder, digest
from tests.folders import SCENARIO, Folder, payments


@pytest.fixture
def stored(tmp_path: Path) -> RunFolder:
    """A run that held, as the loop leaves it."""
    made = Folder(tmp_path / "run")
    made.tables = [payments(made.records)]
    folder = RunFolder.open(made.write())
    folder.save(1, verdict=plain(judge(folder.path)))
    folder.save(2, run={"scenario": "by hand", "digests": folder.digests()})
    return folder


def test_check_of_an_untouched_run_says_the_same(stored: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite.check(stored.path) == 0
    said = capsys.readouterr()
    assert said.out.startswith("HELD, expected held: by hand")
    assert "the run itself had said" not in said.out
    assert said.err == ""


def test_check_names_what_was_altered_and_the_verdict_that_the_run_had(
    stored: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Folder(stored.path)
    save(stored.path, 0, made._table(0, payments(made.records[1:])))
    (stored.path / "checkpoint.json").unlink()
    made._json("checkpoint.json", {**made._checkpoint(True), "note": "by another hand"})
    assert suite.check(stored.path) == 4
    said = capsys.readouterr()
    names = ["checkpoint.json", "sink/0.json", "sink/0.parquet"]
    expected = [f"altered since the run: {name}; what is said is of what lies there now" for name in names]
    assert said.err.splitlines() == expected
    assert "VIOLATED (1 lost)" in said.out
    assert "the run itself had said: HELD, expected held: by hand" in said.out


@pytest.mark.parametrize("how", ["forged", "gone"])
def test_a_verdict_that_was_forged_or_is_gone_is_said(
    stored: RunFolder, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    if how == "gone":
        stored.verdict_json.unlink()
    else:
        stored.verdict_json.write_text(stored.verdict_json.read_text().replace('"held"', '"void"'))
    words = "altered since the run: verdict.json; what is said is of what lies there now\n"
    assert (suite.check(stored.path), capsys.readouterr().err) == (4, words)
    assert (suite.report([stored.path]), capsys.readouterr().err) == (4, words)


def test_an_outcome_that_was_forged_is_said(stored: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    run = json.loads((stored.path / "run.json").read_text())
    run["outcome"]["steps"][0]["hit"] = not run["outcome"]["steps"][0]["hit"]
    (stored.path / "run.json").write_text(json.dumps(run))
    words = "altered since the run: run.json: outcome; what is said is of what lies there now\n"
    assert (suite.check(stored.path), capsys.readouterr().err) == (4, words)


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
    assert (suite.replay(stored.path, suite.Options()), capsys.readouterr().err) == (0, "")
    file.unlink()
    program.write_text("import os\n")
    assert suite.replay(stored.path, suite.Options()) == 0
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
    done = suite.one(SCENARIO, stack, options=suite.Options(reports=tmp_path), listener=lambda event: None)
    assert (done.verdict.word, done.verdict.reasons, done.folder) == (Word.ERROR, ("no such module",), folder.path)
    assert done.seconds > 0
    assert "no such module" in folder.report_html.read_text()
    assert html.index(tmp_path, [done]).is_file()
    assert json.loads(folder.run_json.read_text())["stage"] == 0


def test_the_end_of_a_log_names_the_log_and_an_error_that_stands_higher_up(tmp_path: Path) -> None:
    log = tmp_path / "driver-1.log"
    assert tail(log) == "(no log)"
    log.write_text("first\nValueError: early\nspark.errors.AnalysisException: no column\n" + "WARN later\n" * 3)
    assert tail(log, 4) == f"logs/driver-1.log:\n{log.read_text().split(maxsplit=3)[3].strip()}"
    assert tail(log, 2) == "logs/driver-1.log:\nspark.errors.AnalysisException: no column\n…\nWARN later\nWARN later"
    log.write_text("nothing went wrong\n" * 3)
    assert tail(log, 1) == "logs/driver-1.log:\nnothing went wrong"


@pytest.mark.parametrize("package", ["docker", "testcontainers"])
def test_a_package_that_containers_need_is_named(package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StackError, match=rf"no Python package {package}; pip install 'onceproof\[containers\]'"):
        suite.open_stack("containers", tmp_path)
    assert StackError.exit_code == 4
