"""What a run's plan and history say of it, apart from its verdict: which pipeline, under which test, how long.

Patient: of a plan that is missing, or of another form, nothing is said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from harness import history
from harness.errors import UsageError
from harness.report import claims
from harness.run_folder import store
from harness.scenario import Known, Scenario, Step, plain
from harness.sinks.names import sink_names

SAME = ("guarantee", "input", "schedule", "together")
SINK = ("kind", "target", "expected", "key", "order", "part", "folds")
MOST_BYTES = 64 * 2**20
"""A history that is larger is not read."""


@dataclass(frozen=True, kw_only=True)
class About:
    """`schedule` has a row a step: fault, where, batch. `expected` is the word that the scenario expects. `test` is the
    digest of what both programs of a pair have in common; empty if the run has none. `phases` are seconds by name, in
    their order. `known` is the failure that is worked on, if the scenario names one. `spark` is the version of the
    first attempt."""

    started: str = ""
    pipeline: str = ""
    guarantee: str = ""
    expected: str = ""
    source: str = ""
    sinks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    schedule: tuple[tuple[str, str, str], ...] = ()
    test: str = ""
    phases: tuple[tuple[str, float], ...] = ()
    known: Known | None = None
    spark: str = ""


NOTHING = About()


def planned(scenario: Scenario) -> About:
    """Return what a scenario says, before it has run."""
    return About(
        pipeline=scenario.pipeline.entry,
        guarantee=scenario.guarantee,
        expected=scenario.verdict.word,
        source=scenario.input.source,
        sinks=sink_names(scenario.sinks),
        tags=scenario.tags,
        schedule=tuple(map(_step, scenario.schedule)),
        test=_test(scenario),
        known=scenario.known,
    )


def stored(run: Mapping[str, Any], plan: Mapping[str, Any], events: Path, seconds: float) -> About:
    """Return what a run folder says: its run.json, its plan.json, its history and how long it took."""
    try:
        about = planned(store.scenario_of(plan.get("scenario") or {}))
    except UsageError:
        about = NOTHING
    spark = str(claims.mapping(claims.mapping(run.get("stack")).get("spark")).get("version") or "")
    started = str(run.get("started") or "")
    return replace(about, started=started, phases=phases(events, seconds), spark=spark)


def read(folder: Path, seconds: float) -> About | None:
    """Return what the run folder of a run that has just ended says; None if it keeps no plan."""
    try:
        parts = store.RunFolder(folder).read("run", "plan")
    except UsageError:
        return None
    if "plan" not in parts:
        return None
    return stored(parts.get("run", {}), parts["plan"], store.RunFolder(folder).history, seconds)


def phases(events: Path, seconds: float) -> tuple[tuple[str, float], ...]:
    """Return how long each phase of a run took, by the history; the last one until the run's end."""
    if events.is_symlink() or not events.is_file() or events.stat().st_size > MOST_BYTES:
        return ()
    begun = [(line.event.name, line.at_s) for line in history.read(events) if isinstance(line.event, history.Phase)]
    ends = [*(at for _, at in begun[1:]), seconds]
    out: dict[str, float] = {}
    for (name, at), end in zip(begun, ends[: len(begun)], strict=True):
        out[name] = out.get(name, 0.0) + max(0.0, end - at)
    return tuple((name, round(took, 3)) for name, took in out.items())


def _step(step: Step) -> tuple[str, str, str]:
    when = step.when
    return step.name, when.place or when.kind, "" if when.batch is None else str(when.batch)


def _test(scenario: Scenario) -> str:
    """Return the digest of all but the program that a pair has in common: guarantee, input, schedule, sinks with their
    expected rows, for programs of one folder."""
    entry = scenario.pipeline.entry
    if not entry:
        return ""
    given = plain(scenario)
    same: dict[str, Any] = {name: given[name] for name in SAME}
    same["sinks"] = [{name: sink[name] for name in SINK} for sink in given["sinks"]]
    same["folder"] = str(PurePosixPath(entry).parent)
    same["executors"] = scenario.pipeline.executors
    lines = [scenario.pipeline.spark, scenario.restart.spark]
    same |= {"lines": lines} if any(lines) else {}
    text = json.dumps(same, sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
