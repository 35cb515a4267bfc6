"""What the adversarial cases on the real stack share: a program of ours, as wrong as its flags say, in one scenario."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.judge import judged
from harness.load import load
from harness.run.loop import Result
from harness.run_folder import store
from harness.scenario import Finding, Scenario, Verdict, plain

HOUSE = Path(__file__).parents[1]
ADDRESS = ("--bootstrap", "{kafka.bootstrap}", "--topic", "{topic}", "--folder", "{folder}")
CRASH = "crash before offset commit"
SCHEDULE = [{"when": {"batch": 3}, "do": CRASH}]
ONCE = {"postgres": "create table payments (id bigint primary key, account text, amount numeric(12, 2))"}
TOTAL: dict[str, Any] = {"input": {"records": 600, "partitions": 1, "rate": "20000/s"}}
"""All at once: the batches are as large as they may be, but for the first and the last."""
COUNT = {
    "postgres": "select one, n from total",
    "expected": "select 1 as one, count(*) as n from ledger",
    "key": ["one"],
}
# All at once, so that an offset range has 33 records of each partition: at row 290, in the third offset range, one task
# has committed.
EARLY: dict[str, Any] = {
    "guarantee": "at-most-once",
    "input": {"records": 600, "rate": "20000/s"},
    "schedule": [{"when": {"rows": 290}, "do": "crash mid-sink"}],
}


class Play:
    """`play("payments", "--once", ...)` runs that program of `tests/programs` with these flags; keywords are the
    scenario's. A name with a slash is one of our pipelines."""

    def __init__(self, place: Path, run_scenario: Callable[[Scenario], Result]) -> None:
        self._place, self._run = place, run_scenario
        shutil.copytree(HOUSE / "tests" / "programs", place / "programs")
        shutil.copytree(HOUSE / "pipelines", place / "pipelines")
        (place / "scenarios").mkdir()

    def __call__(self, program: str, *flags: str, pipeline: dict[str, Any] | None = None, **keys: Any) -> Result:
        start = {"entry": f"programs/{program}.py", "args": [*ADDRESS, *flags]}
        if "/" in program:
            start = {"entry": f"pipelines/{program}.py"}
        claim = {"name": program, "pipeline": {**start, **(pipeline or {})}, "schedule": SCHEDULE, **keys}
        path = self._place / "scenarios" / "it.yaml"
        # JSON is YAML.
        path.write_text(json.dumps(claim))
        return self._run(load(path))

    def claimed(self, result: Result, **changes: Any) -> Verdict:
        """The verdict on the same run, had its scenario claimed something else of its sink."""
        folder = self._place / "claimed"
        shutil.copytree(result.folder, folder)
        path = folder / "plan.json"
        plan = json.loads(path.read_text())
        scenario: Scenario = store.noun(Scenario, plan["scenario"], "plan")
        scenario = replace(scenario, sinks=(replace(scenario.sinks[0], **changes),))
        path.write_text(json.dumps({**plan, "scenario": plain(scenario)}))
        return judged(folder).verdict


def said(verdict: Verdict) -> str:
    """Reasons and notes."""
    return "\n".join((*verdict.reasons, *verdict.notes))


def blamed(findings: tuple[Finding, ...]) -> set[tuple[str, ...]]:
    """The faults that findings name."""
    return {finding.faults for finding in findings}
