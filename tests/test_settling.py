"""On the real stack: a sink is read when nothing more can come, and a baseline run shows what a program does without
faults."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.history import BaselineRun, History, read
from harness.judge import judged
from harness.load import load
from harness.machine import cache
from harness.run import loop
from harness.run.baseline import runs as baseline_runs
from harness.run.loop import Result
from harness.scenario import Scenario, Word
from harness.stack import Stack
from tests.folders import recorded

pytestmark = pytest.mark.stack
HOUSE = Path(__file__).parents[1]
Run = Callable[[Scenario], Result]

SECOND_HOP = """
name: a second hop every twenty seconds
pipeline: programs/second_hop.py
input: {records: 300}
schedule:
  - {when: {point: batch-planned, batch: 1}, do: kill driver}
verdict: held
"""
UPSERT = """
name: upsert
pipeline: pipelines/transactions/upsert.py
schedule:
  - {when: {batch: 3}, do: crash before offset commit}
verdict: held
"""


def scenario(project: Path, text: str) -> Scenario:
    shutil.copytree(HOUSE / "tests" / "programs", project / "programs")
    shutil.copytree(HOUSE / "pipelines", project / "pipelines")
    path = project / "scenarios" / "it.yaml"
    path.parent.mkdir()
    path.write_text(text)
    return load(path)


# In CI: test_catch_up.py without Spark, a sink that is late in test_truth.py.
@pytest.mark.prove
@pytest.mark.slow
def test_what_a_second_query_has_not_passed_on_yet_is_not_lost(tmp_path: Path, run_scenario: Run) -> None:
    result = run_scenario(scenario(tmp_path, SECOND_HOP))
    assert (result.verdict.word, result.verdict.reasons) == (Word.HELD, ())
    outcome = json.loads((result.folder / "run.json").read_text())["outcome"]
    assert outcome["caught_up"] and outcome["stalled"] is None and len(outcome["deaths"]) == 1


@pytest.mark.prove
def test_a_baseline_run_lies_in_the_run_and_is_found_in_the_cache(
    tmp_path: Path, run_scenario: Run, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "cache"
    kept.mkdir()
    others = cache.folder
    monkeypatch.setattr(cache, "folder", lambda *parts: kept if parts == (baseline_runs.FOLDER,) else others(*parts))
    monkeypatch.setattr(loop, "judged", lambda folder: replace(judged(folder), baseline_runs_needed=1))
    claim = scenario(tmp_path, UPSERT)
    first, second = run_scenario(claim), run_scenario(claim)
    told = [parts(result.folder / "baseline" / "1") for result in (first, second)]
    assert [run["cached"] for run, _ in told] == [False, True]
    run, checkpoint = told[0]
    assert run["digest"] == told[1][0]["digest"]
    assert run["outcome"]["caught_up"] and run["outcome"]["error"] is None and run["outcome"]["deaths"] == []
    assert 0 < run["outcome"]["gap_s"] < run["outcome"]["seconds"]
    assert checkpoint["end"] == checkpoint["committed"]
    batches = recorded(first.folder, "progress")["batches"]
    assert sum(run["portions"]) == 600
    assert run["portions"] == [size for size in map(taken, batches) if size]
    for folder in (first.folder, second.folder):
        assert sorted(path.name for path in (folder / "baseline").iterdir()) == ["1"]
        names = {path.name for path in (folder / "baseline" / "1").iterdir()}
        assert names == {"plan.json", "run.json", "history.jsonl", "ledger", "sink"}
        told_of = [line.event for line in read(folder / "history.jsonl")]
        states = [event.state for event in told_of if isinstance(event, BaselineRun)]
        assert states == ["begins", "ended" if folder == first.folder else "cached"]
    assert first.verdict.word is second.verdict.word is Word.HELD
    assert len(list(kept.iterdir())) == 1


def test_a_program_that_does_not_work_without_faults_is_an_outcome(tmp_path: Path, stack: Stack) -> None:
    claim = scenario(tmp_path, UPSERT)
    program = tmp_path / "pipelines" / "transactions" / "upsert.py"
    program.write_text("raise SystemExit('no such account: fatal')\n")
    folder = tmp_path / "reports" / "upsert" / "run"
    folder.mkdir(parents=True)
    made = baseline_runs.baseline_run(
        claim, stack, folder=folder, number=1, seed=0, root=tmp_path, portions=(), history=History(None)
    )
    run = json.loads((made / "run.json").read_text())
    assert not run["outcome"]["caught_up"]
    assert "no such account: fatal" in run["outcome"]["error"]
    assert (made / "logs" / "driver-1.log").is_file()
    assert not (cache.root() / "baseline" / run["digest"]).exists()


def parts(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    return json.loads((folder / "run.json").read_text()), recorded(folder, "progress")


def taken(batch: dict[str, Any]) -> int:
    return sum(end - start for start, end in batch["ranges"].values())
