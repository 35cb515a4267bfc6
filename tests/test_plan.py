"""The plan: every choice made, and the same bytes for the same scenario and seed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.load import load
from harness.run.plan import plan, text
from harness.scenario import Scenario
from tests.limits import PROCESS_S
from tests.strategies import project, scenarios

ROOT = Path(__file__).resolve().parent.parent
FILE = """\
name: n
pipeline: pipelines/pay.py
sink: {postgres: t, effect: select id from ledger, key: [id]}
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
            "trigger": {"kind": "rows", "value": 7, "place": "after row 7 in the sink", "batch": 2, "implied": False},
            "fault": {"kind": "crash mid-sink", "impact": "driver killed", "options": {}},
        },
        {
            "step": 2,
            "name": "crash before offset commit (jvm)",
            "when": "failpoint saved",
            "do": "SIGKILL to the driver when the sink has the batch and Spark's `commits/N` is not there yet",
            "trigger": {"kind": "failpoint", "value": "saved", "place": "failpoint saved", "implied": False},
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
@settings(max_examples=50)
def test_the_same_seed_gives_the_same_bytes(scenario: Scenario, seed: int) -> None:
    made = plan(scenario, seed=seed)
    assert text(made) == text(plan(scenario, seed=seed))
    assert json.loads(text(made)) == made
    assert made["seed"] == made["input"]["seed"] == seed
    assert plan(scenario, seed=seed ^ 1) != made
    assert made["input"]["all"] is (scenario.input.records == 0)


def test_another_process_makes_the_same_bytes(scenario: Scenario) -> None:
    command = [sys.executable, "-m", "harness", "run", scenario.path, "--dry-run", "--seed", "7"]
    made = [
        subprocess.run(
            command, capture_output=True, timeout=PROCESS_S, check=True, cwd=ROOT, env={"PYTHONHASHSEED": salt}
        )
        for salt in ("1", "2")
    ]
    assert made[0].stdout == made[1].stdout == text(plan(scenario, seed=7)).encode()
