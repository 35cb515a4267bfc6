"""The plan: every choice made, and the same bytes for the same scenario and seed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.load import dump, load
from harness.nightly.draw import plans, targets
from harness.report import render
from harness.report.ci import run_text
from harness.report.summary import Run
from harness.run.plan import plan, text
from harness.run.run_or_baseline import planned
from harness.run_folder import digests
from harness.run_folder.store import RunFolder
from harness.scenario import Scenario
from harness.stacks.registry import STACKS
from harness.suite import replay
from harness.suite.options import Options
from harness.workloads import make
from tests import sample_runs as sample
from tests.limits import PROCESS_S, examples
from tests.strategies import project, scenarios

ROOT = Path(__file__).resolve().parent.parent
FILE = """\
name: n
pipeline: pipelines/pay.py
sink: {postgres: t, expected: select id from ledger, key: [id]}
input: {records: 9, rate: 2.5/s}
schedule:
  - {when: {rows: 7, batch: 2}, do: crash mid-sink}
  - {when: {failpoint: saved}, do: crash before offset commit, victim: jvm}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    path = project(tmp_path) / "s.yaml"
    path.write_text(FILE, encoding="utf-8")
    return load(path)


def test_the_steps_are_spelled_out(scenario: Scenario) -> None:
    assert plan(scenario, seed=7)["steps"] == [
        {
            "step": 1,
            "name": "crash mid-sink",
            "when": "after row 7 in the sink of batch 2",
            "do": "SIGKILL to the driver and to every executor after some rows of the sink",
            "trigger": {
                "kind": "rows",
                "value": 7,
                "place": "after row 7 in the sink",
                "batch": 2,
                "implied": False,
                "options": {},
            },
            "fault": {"kind": "crash mid-sink", "impact": "driver killed", "options": {}},
        },
        {
            "step": 2,
            "name": "crash before offset commit (jvm)",
            "when": "failpoint saved",
            "do": "SIGKILL to the driver when the sink has the batch and Spark's `commits/N` is not there yet",
            "trigger": {
                "kind": "failpoint",
                "value": "saved",
                "place": "failpoint saved",
                "implied": False,
                "options": {},
            },
            "fault": {"kind": "crash before offset commit", "impact": "driver killed", "options": {"victim": "jvm"}},
        },
    ]


def test_the_input_is_spelled_out(scenario: Scenario) -> None:
    assert plan(scenario, seed=7)["input"] == {
        "workload": "transactions",
        "source": "kafka",
        "records": 9,
        "options": {"keys": 50, "skew": 0.0},
        "source_options": {"partitions": 3, "topics": 1},
        "rate_per_s": 2.5,
        "seed": 7,
        "rate": "2.5 records a second",
        "all": False,
    }


@given(scenarios(), st.integers(0, 2**63 - 1))
@settings(max_examples=examples(50))
def test_the_same_seed_gives_the_same_bytes(scenario: Scenario, seed: int) -> None:
    made = plan(scenario, seed=seed)
    assert text(made) == text(plan(scenario, seed=seed))
    assert json.loads(text(made)) == made
    assert made["seed"] == made["input"]["seed"] == seed
    assert plan(scenario, seed=seed ^ 1) != made
    assert made["input"]["all"] is (scenario.input.records == 0)


@pytest.mark.subprocess
def test_another_process_makes_the_same_bytes(scenario: Scenario) -> None:
    command = [sys.executable, "-m", "harness", "run", scenario.path, "--dry-run", "--seed", "7"]
    made = [
        subprocess.run(
            command, capture_output=True, timeout=PROCESS_S, check=True, cwd=ROOT, env={"PYTHONHASHSEED": salt}
        )
        for salt in ("1", "2")
    ]
    assert made[0].stdout == made[1].stdout == text(plan(scenario, seed=7)).encode()


class Stack:
    """Nothing runs on it."""

    name = "processes"

    def describe(self, components: object) -> dict[str, Any]:
        return {"stack": "processes", "options": ""}


def stored(scenario: Scenario, reports: Path) -> RunFolder:
    """A run of the scenario, with its page."""
    folder = RunFolder.create(reports, scenario.name, "r1", need_bytes=0)
    workload = make(scenario.input, seed=7, root=Path(scenario.path).parent)
    folder.save(0, **planned(scenario, workload, cast(Any, Stack()), seed=7, run_id="r1"))
    folder.history.write_text("", encoding="utf-8")
    folder.save(1)
    folder.save(2, verdict=sample.verdict())
    digests.write(folder.path)
    render.write(folder.path)
    return folder


def drawn(scenario: Scenario) -> Scenario:
    """The first plan of a night over it."""
    means = STACKS["processes"].means
    return next(plans(targets([scenario], means), means=means, seed=7)).scenario


def test_the_page_of_a_run_offers_its_file_and_shows_it(scenario: Scenario, tmp_path: Path) -> None:
    # The seed is for the command to say.
    folder = stored(replace(scenario, seed=9), tmp_path)
    html = folder.report_html.read_text()
    assert f"onceproof run {scenario.path} --seed 7" in html and "onceproof replay" in html
    assert (folder.path / "scenario.yaml").read_text() == FILE
    assert Run.read(folder.path).file == scenario.path


def test_the_page_of_a_drawn_plan_offers_no_file_and_shows_what_ran(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = drawn(scenario)
    folder = stored(ran, tmp_path)
    html = folder.report_html.read_text()
    assert "onceproof replay" in html and "onceproof run" not in html
    assert (folder.path / "scenario.yaml").read_text() == dump(ran) != FILE
    again = tmp_path / "again.yaml"
    again.write_text((folder.path / "scenario.yaml").read_text())
    assert replace(load(again), path=scenario.path) == ran
    # Nor does any other command name the file.
    run = Run.read(folder.path)
    assert (run.file, run_text.command(replace(run, folder=None))) == ("", "")
    # A replay knows where its program lies, and of no file that could have changed.
    monkeypatch.setattr("harness.suite.run_all", lambda work, options: int([each.path for each in work] != [ran.path]))
    assert (replay(folder.path, Options()), capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize("now", [FILE.replace("rows: 7", "rows: 8"), "name: [", ""])
def test_a_replay_whose_file_has_changed_shows_what_ran(scenario: Scenario, tmp_path: Path, now: str) -> None:
    Path(scenario.path).write_text(now)
    folder = stored(scenario, tmp_path)
    assert (folder.path / "scenario.yaml").read_text() == dump(scenario)
    assert "onceproof run" not in folder.report_html.read_text()
    Path(scenario.path).unlink()
    assert "onceproof run" not in stored(replace(scenario, name="gone"), tmp_path).report_html.read_text()
