"""A scenario with every choice made: what will be sent, what will be struck and when, what would be the answer.

A pure function of scenario and seed: the same two give the same bytes (`text`), on any machine, on any day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import ScenarioError
from harness.faults import FAULTS
from harness.kinds import About
from harness.load import load
from harness.scenario import Input, Scenario, Step, plain
from harness.sinks.names import sink_names
from harness.sources import SOURCES
from harness.stacks.other_versions import on
from harness.workloads import WORKLOADS

VERSION = 7


def in_its_file(scenario: Scenario) -> bool:
    """Return whether its file says this very scenario now."""
    return its_file(scenario) is not None


def its_file(scenario: Scenario) -> Scenario | None:
    """Return the scenario that its file has now, if it is this one. It is None for a drawn one, and for a stored one
    whose file has changed. The seed does not count, nor a Spark version if the file names none: the command that
    repeats a run says them."""
    try:
        current = load(Path(scenario.path)) if scenario.path else None
    except ScenarioError:
        return None
    same = current is not None and _bare(on(current, scenario.pipeline.spark)) == _bare(scenario)
    return current if same else None


def _bare(scenario: Scenario) -> Scenario:
    return replace(scenario, seed=0)


def plan(scenario: Scenario, *, seed: int) -> dict[str, Any]:
    """JSON-ready. `steps` has each trigger and fault in words and in full, also a trigger that the fault implies."""
    whole, names = json.loads(json.dumps(plain(scenario))), sink_names(scenario.sinks)
    return {
        "version": VERSION,
        "name": scenario.name,
        "claim": str(scenario.guarantee),
        "seed": seed,
        "pipeline": whole["pipeline"],
        "setup": whole["setup"],
        "sinks": [{"name": name, **each} for name, each in zip(names, whole["sinks"], strict=True)],
        "together": scenario.together,
        "input": sent(scenario.input, seed=seed),
        "steps": [opened(number, step) for number, step in enumerate(scenario.schedule, 1)],
        "restart": whole["restart"],
        "verdict": {"words": str(scenario.verdict), **whole["verdict"]},
        "timeout_s": scenario.timeout_s,
        "quiet_period_s": scenario.quiet_period_s,
    }


def sent(input: Input, *, seed: int) -> dict[str, Any]:
    """Return what the producer does. 0 records are all that the workload has; without a rate, portions follow the
    pipeline."""
    return {
        **{key: value for key, value in plain(input).items() if value is not None},
        "options": {**usual(WORKLOADS[input.workload].about), **input.options},
        "source_options": {**usual(SOURCES[input.source].about), **input.source_options},
        "seed": seed,
        "rate": "as planned by the pipeline" if input.rate_per_s is None else f"{input.rate_per_s:g} records a second",
        "all": input.records == 0,
    }


def usual(kind: About) -> dict[str, Any]:
    """Return the options of a kind that go without saying."""
    fields = kind.options.model_fields.items()
    return {name: info.default for name, info in fields if not info.is_required() and info.default is not None}


def opened(number: int, step: Step) -> dict[str, Any]:
    """Return one step: number, name, when, what is done then; trigger and fault in full (without what is not set)."""
    return {
        "step": number,
        "name": step.name,
        "when": str(step.when),
        "do": FAULTS[step.do.kind].about.summary,
        "trigger": {key: value for key, value in plain(step.when).items() if value is not None},
        "fault": {key: value for key, value in plain(step.do).items() if value is not None},
    }


def text(made: Mapping[str, Any]) -> str:
    """Return a plan as the bytes that are kept and compared."""
    return json.dumps(made, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
