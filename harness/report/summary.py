"""What a suite says of itself to other programs: `reports/latest/summary.json`.

    {"runs": [{"scenario", "expected", "verdict", "as_expected", "findings": {kind: count},
               "faults": [{"name", "point", "batch", "attempt", "injected", "evidence"}], "seconds",
               "self_tests": {name: found}, "reasons", "stack", "folder",
               "exposures": [{"step", "sink", "harm", "point", "batch", "note", "why", ...}],
               "points_reached": [crash point], "untried": [crash point], "notes",
               "file", "seed", "exit_code", "known", "unstruck": [[sink, crash point]],
               "struck", "idle": [{"sink", "point", "fault"}], "drawn", "again", "removed",
               "about": {"started", "pipeline", "guarantee", "expected", "source", "sinks", "tags",
                         "schedule": [[fault, where, batch]], "test", "phases": [[name, seconds]], "known", "spark"}}],
     "exit_code"}

`known` is the issue of a failure that is known, else empty. The last `exit_code` is of these runs. Written again after
each scenario, so that a suite that is killed leaves what it had. A night's has `"what": "night"`, and for each run only
what the page of many runs says of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.report import claims, exposures, failure_text
from harness.report.many import about as abouts
from harness.report.many.about import NOTHING, About
from harness.report.many.seen import Seen
from harness.run_folder import command, store
from harness.scenario import Evidence, Finding, Kind, StepOutcome, Verdict, Word, plain

CAUSE = ("kind", "sink", "position", "checkpoint", "faults", "fits", "without_faults")
"""What groups findings by cause."""
# What a page and a table put first: the runs that need a reader.
WORST_FIRST = (Word.ERROR, Word.VIOLATED, Word.UNTESTED, Word.INCONCLUSIVE, Word.HELD)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a suite. `folder` is None if it failed before it had one; `seconds` is wall time; `file` the
    scenario's, as a command named it; `seed` None if that is not known; `about` is empty where no plan was kept."""

    scenario: str
    verdict: Verdict
    folder: Path | None = None
    seconds: float = 0.0
    stack: str = ""
    file: str = ""
    seed: int | None = None
    about: About = NOTHING

    @classmethod
    def read(cls, folder: Path) -> Run:
        """Return a stored run. One that ended without a verdict is an error. Raises UsageError if it is no run
        folder."""
        found = store.RunFolder.open(folder)
        parts = found.read("run", "plan")
        run, plan = parts["run"], claims.mapping(parts.get("plan"))
        planned, seconds = claims.mapping(plan.get("scenario")), _seconds(run.get("seconds"))
        return cls(
            scenario=str(run.get("scenario", found.path.parent.name)),
            verdict=verdict_of(found, run),
            folder=found.path,
            seconds=seconds,
            stack=_stack(run.get("stack", "")),
            # A run of what no file says names none. One of an older version does not know.
            file=str(run.get("path", planned.get("path")) or ""),
            seed=seed if isinstance(seed := run.get("seed"), int) else None,
            about=abouts.stored(run, plan, found.history, seconds),
        )

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Run:
        """The inverse of `pack`."""
        run: Run = _adapter().validate_python(data)
        return run

    def pack(self) -> dict[str, Any]:
        """JSON-ready, and whole: `unpack` gives the same run."""
        return plain(self) | {"folder": str(self.folder) if self.folder else None}

    @property
    def known(self) -> str:
        """The issue of its known failure; empty if there is none, if it is another failure, or if it is over."""
        verdict, issue = self.verdict, self.about.known
        if verdict.as_expected or issue is None:
            return ""
        kinds = verdict.kinds().keys() - {Kind.RECOVERED.value}
        covered = issue.covers(word=verdict.word, kinds=kinds, day=self.about.started[:10])
        return issue.issue if covered else ""

    @property
    def wrong(self) -> bool:
        """Return whether it ended otherwise than expected, in a way that is new."""
        return not (self.verdict.as_expected or self.known)

    def injections(self) -> tuple[int, int]:
        """Return how many faults were injected at their crash points, of how many."""
        return sum(step.injected for step in self.verdict.steps), len(self.verdict.steps)


def verdict_of(found: store.RunFolder, run: dict[str, Any]) -> Verdict:
    """Return the verdict of a stored run, of which `run` is its run.json. Raises UsageError for a file that is
    damaged."""
    return found.verdict() or error(_why(run))


def stack_options(folder: Path | None) -> str:
    """Return the options by which a command gets the stack of a stored run; empty if there is none to read."""
    return command.stack_options(run_json(folder)) if folder else ""


def run_json(folder: Path) -> dict[str, Any]:
    """Return what a run says of itself; empty if there is none to read."""
    try:
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return run if isinstance(run, dict) else {}


def error(reason: str, *, expected: str = "held") -> Verdict:
    """Return the verdict of a run that the harness or its surroundings failed."""
    return Verdict(word=Word.ERROR, as_expected=False, expected=expected, reasons=(reason,))


def brief(run: Run) -> Run:
    """Return the run with only those findings whole that a suite shows; the others keep what groups them by cause. A
    suite keeps each run until its end, and a verdict has a thousand findings of a kind."""
    verdict = run.verdict
    whole = {} if verdict.as_expected else {id(each): each for each in failure_text.shown_first(verdict.findings)}
    bare: dict[tuple[object, ...], Finding] = {}

    def kept(each: Finding) -> Finding:
        cause = {name: getattr(each, name) for name in CAUSE}
        return whole.get(id(each)) or bare.setdefault(tuple(cause.values()), Finding(**cause))

    return replace(run, verdict=replace(verdict, findings=tuple(map(kept, verdict.findings))))


def write(reports: Path, runs: Sequence[Run]) -> Path:
    """Write `reports/latest/summary.json`, whole or not at all. Raises HarnessError when the disk refuses."""
    path = store.latest(reports) / "summary.json"
    data = {"runs": [entry(run) for run in runs], "exit_code": exit_code(runs)}
    store.write(path, json.dumps(data, indent=1, default=str) + "\n")
    return path


def exit_code(runs: Sequence[Run]) -> int:
    """0 all as expected or known to fail, 1 a guarantee disproved or a broken version not caught, 3 inconclusive
    or untested, 4 an error."""
    wrong = [run.verdict.word for run in runs if run.wrong]
    if Word.ERROR in wrong:
        return 4
    if Word.VIOLATED in wrong or Word.HELD in wrong:
        return 1
    return 3 if wrong else 0


def entry(run: Run) -> dict[str, Any]:
    """Return one run as `summary.json` has it."""
    verdict = run.verdict
    return {
        **Seen.of(run).entry(str(run.folder or "")),
        "faults": [_fault(step) for step in verdict.steps],
        "seconds": round(run.seconds, 3),
        "self_tests": dict(verdict.self_tests),
        "exposures": [plain(exposure) for exposure in verdict.exposures],
        "points_reached": exposures.points_reached(verdict),
        "untried": [f"{sink}: {point}" for sink, point in verdict.untried],
        "notes": list(verdict.notes),
        "seed": run.seed,
        "exit_code": exit_code([run]),
    }


def _fault(step: StepOutcome) -> dict[str, Any]:
    usual = plain(Evidence())
    evidence = {name: value for name, value in plain(step.evidence).items() if value != usual[name]}
    place = {"point": step.point, "batch": step.batch, "attempt": step.attempt}
    return {"name": step.name, **place, "injected": step.injected, "evidence": evidence}


def _why(run: dict[str, Any]) -> str:
    """Return why a stored run has no verdict."""
    outcome = run.get("outcome")
    error = outcome.get("error") if isinstance(outcome, dict) else None
    return str(error) if error else "the run ended before it had a verdict"


def _seconds(seconds: Any) -> float:
    try:
        return float(seconds)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _stack(stack: Any) -> str:
    return str(stack.get("stack", stack.get("name", ""))) if isinstance(stack, dict) else str(stack)


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Run)
