"""What a run's plan and history say of it, apart from its verdict: which pipeline, under which test, how long.

Patient: a part that is missing, or of another form, is empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from harness import history
from harness.errors import UsageError
from harness.report import claims
from harness.run_folder import store
from harness.scenario import Known, Scenario, plain

SAME = ("guarantee", "input", "schedule", "together")
SINK = ("kind", "target", "expected", "key", "order", "part", "folds")
MOST_BYTES = 64 * 2**20
"""A history that is larger is not read."""


@dataclass(frozen=True, kw_only=True)
class About:
    """`schedule` has a row a step: fault, where, batch. `expected` is the word that the scenario expects. `test` is the
    digest of what twins have in common; empty if nothing says it. `phases` are seconds by name, in their order. `known`
    is the failure that is worked on, if the scenario names one. `spark` is the version of the first attempt."""

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
    return _about(plain(scenario), tuple(sink.name for sink in scenario.sinks))


def stored(run: Mapping[str, Any], plan: Mapping[str, Any], events: Path, seconds: float) -> About:
    """Return what a run folder says: its run.json, its plan.json, its history and how long it took."""
    names = tuple(str(sink.get("name") or "") for sink in claims.mappings(plan.get("sinks")))
    about = _about(claims.mapping(plan.get("scenario")), names)
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


def _about(scenario: Mapping[str, Any], names: Sequence[str]) -> About:
    if not scenario:
        return About()
    pipeline, expected = claims.mapping(scenario.get("pipeline")), claims.mapping(scenario.get("verdict"))
    sinks = claims.mappings(scenario.get("sinks"))
    targets = names or tuple(f"{sink.get('kind', '')} {sink.get('target', '')}" for sink in sinks)
    return About(
        pipeline=str(pipeline.get("entry") or ""),
        guarantee=str(scenario.get("guarantee") or ""),
        expected=str(expected.get("word") or ""),
        source=str(claims.mapping(scenario.get("input")).get("source") or ""),
        sinks=tuple(targets),
        tags=tuple(map(str, scenario.get("tags") or ())),
        schedule=tuple(map(_step, claims.mappings(scenario.get("schedule")))),
        test=_test(scenario),
        known=_known(claims.mapping(scenario.get("known"))),
    )


def _known(stored: Mapping[str, Any]) -> Known | None:
    issue, until, kinds = stored.get("issue"), stored.get("until"), stored.get("violated")
    if not (isinstance(issue, str) and isinstance(until, str) and isinstance(kinds, (list, tuple))):
        return None
    return Known(issue=issue, until=until, violated=tuple(map(str, kinds)))


def _step(step: Mapping[str, Any]) -> tuple[str, str, str]:
    when = claims.mapping(step.get("when"))
    batch = when.get("batch")
    place = str(when.get("place") or when.get("kind") or "")
    return claims.planned_fault(step), place, "" if batch is None else str(batch)


def _test(scenario: Mapping[str, Any]) -> str:
    """Return the digest of everything but the program that two twins share: guarantee, input, schedule, and sinks with
    what they should hold, asked of programs in one folder."""
    pipeline = claims.mapping(scenario.get("pipeline"))
    entry = str(pipeline.get("entry") or "")
    if not entry:
        return ""
    same: dict[str, Any] = {name: scenario.get(name) for name in SAME}
    same["sinks"] = [{name: sink.get(name) for name in SINK} for sink in claims.mappings(scenario.get("sinks"))]
    same["folder"] = str(PurePosixPath(entry).parent)
    same["executors"] = pipeline.get("executors")
    lines = [claims.mapping(scenario.get(part)).get("spark") for part in ("pipeline", "restart")]
    same |= {"lines": lines} if any(lines) else {}
    text = json.dumps(same, sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
