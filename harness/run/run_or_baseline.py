"""What a run and its baseline runs have in common: what is known before anything starts, and how what was
started ends."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import __version__
from harness.history import History, NotEnded, Waited
from harness.load import dump
from harness.run.catch_up import CatchUp
from harness.run.live_run import Live
from harness.run.plan import its_file, plan
from harness.scenario import Scenario, plain
from harness.stack import Stack
from harness.stacks import other_versions
from harness.wait import tallied, undisturbed
from harness.workloads.base import Workload


def planned(scenario: Scenario, workload: Workload, stack: Stack, *, seed: int, run_id: str) -> dict[str, Any]:
    """Return what is known before anything starts: the parts of save 0. A scenario that its file does not say is kept
    as it ran, and names no file: a command with it would play another one."""
    written = its_file(scenario)
    columns = [{"name": c.name, "type": c.type, "expression": c.expression} for c in workload.columns]
    described = other_versions.described(stack, scenario)
    return {
        "plan": {**plan(scenario, seed=seed), "scenario": plain(scenario), "columns": columns},
        "scenario": Path(scenario.path).read_text(encoding="utf-8") if written else dump(scenario),
        "run": {
            "run_id": run_id,
            "scenario": scenario.name,
            "path": scenario.path if written else "",
            "seed": seed,
            "stack": described,
            "versions": {"onceproof": __version__, "python": sys.version.split()[0]},
            "command": _command(scenario, described, seed, written) if written else "",
        },
    }


def _command(scenario: Scenario, stack: Mapping[str, Any], seed: int, written: Scenario) -> str:
    words = ["onceproof", "run", scenario.path, "--seed", str(seed)]
    line = ["--spark", scenario.pipeline.spark] if scenario.pipeline.spark != written.pipeline.spark else []
    return shlex.join([*words, *line, *str(stack.get("options", "")).split()])


def play(live: Live, workload: Workload) -> None:
    """From empty resources to the sink read and saved. The history says what this thread waited for meanwhile:
    schedule, supervisor and producer run in other threads, whose waits are not in it."""
    with tallied() as waited:
        try:
            live.perform(workload)
            CatchUp(live).catch_up()
        finally:
            live.history.write(Waited(seconds={what: round(took_s, 2) for what, took_s in waited.items()}))


def ended(live: Live, history: History) -> None:
    """End what was started. A failure to do so must not hide what the run came to: the history has it, and the next run
    finds out about a stack that is gone."""
    try:
        with undisturbed():
            live.close()
    except Exception as failure:
        history.write(NotEnded(why=repr(failure)))
