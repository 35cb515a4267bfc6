"""What the page of one run says: `build` turns the parts of a run folder into plain texts.

Pure. The template only places these texts; it decides nothing. A `Budget` says how much is shown; what is left out is
counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from harness.history import By, Event, Line, ProgressRead, Sent, SinkRead, flat
from harness.report import claims, exposures
from harness.report.budget import FULL, Budget
from harness.report.causes.groups import cut, groups
from harness.report.causes.headline import Case, headline, labels
from harness.report.causes.not_caught_up import NotCaughtUp, not_caught_up, ran
from harness.report.causes.sentences import listed, sentences
from harness.report.causes.shown import findings_summary, shown
from harness.report.escape import dictionary, plural, visible
from harness.report.failure_text import evidence_lines, meaning
from harness.report.snapshots import BaselineText, SnapshotText
from harness.report.timeline.attempt_rows import attempt_rows
from harness.report.timeline.counts import Counts
from harness.report.timeline.curves import curves
from harness.report.timeline.from_history import Happened, happened
from harness.report.timeline.picture import Picture, picture
from harness.report.timeline.saved_ranges import range_count, saved_at
from harness.report.timeline.tracks import Setting
from harness.run_folder import command
from harness.scenario import Scenario, StepOutcome, Verdict
from harness.snapshot import Position, Progressed

# The proof of a step stands with the step.
NOT_SHOWN = frozenset({"at_s", "evidence"})


@dataclass(frozen=True, kw_only=True)
class StepText:
    """One step of the schedule: what was struck where, its proof, what it exposed, and what the snapshots held."""

    number: int
    step: StepOutcome
    batch: str
    at: str
    evidence: list[str]
    exposures: list[str]
    snapshot: SnapshotText


LogText = tuple[str, list[str]]
"""The name and the last lines of one log."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a run folder holds. `folder` is its path as a command line would name it; `plan` the scenario as it ran."""

    folder: str
    run: Mapping[str, Any]
    verdict: Verdict
    plan: Scenario
    scenario_file: str
    history: Sequence[Line]
    logs: Sequence[LogText] = ()
    snapshots: Sequence[SnapshotText] = ()
    baseline_runs: Sequence[BaselineText] = ()
    progressed: Progressed = field(default_factory=Progressed)
    counts: Counts | None = None
    starved: Mapping[int, int] = field(default_factory=dict)
    """By attempt, how often its log says that Spark had nothing to run it on."""

    @cached_property
    def past(self) -> Happened:
        """Return what the history says that happened."""
        return happened(self.history, self.verdict.steps)


def case_of(parts: Parts) -> Case:
    """Return what the verdict's sentences are made from."""
    return Case(
        verdict=parts.verdict,
        groups=groups(parts.verdict.findings),
        guarantee=parts.plan.guarantee,
        impacts={number: step.do.impact for number, step in enumerate(parts.plan.schedule, 1)},
        labels=labels(parts.verdict.steps),
        progressed=parts.progressed,
        counts=parts.counts,
    )


def build(parts: Parts, budget: Budget = FULL) -> dict[str, Any]:
    """Return every text of the page of one run, by the name that its template has for it."""
    verdict, case = parts.verdict, case_of(parts)
    events = _shown_events(parts.history)
    lead, *because = headline(case)
    left = open_end(parts)
    steps = _steps(parts)
    return {
        "verdict": verdict,
        "scenario": parts.run.get("scenario", parts.plan.name),
        "run_id": parts.run.get("run_id", "without an id"),
        "started": parts.run.get("started", "at an unknown time"),
        "meaning": meaning(verdict.word),
        "agreement": claims.agreement(verdict),
        "about": claims.about(parts.plan, verdict.steps),
        "lead": lead,
        "because": " ".join(left.summary[:1] if left and left.summary else because),
        "not_caught_up": left,
        "figures": claims.figures(verdict, caught_up=left is None, sinks=len(parts.plan.sinks)),
        "reasons": [" ".join(sentences(reason)) for reason in exposures.few(verdict.reasons)],
        "notes": [" ".join(sentences(note)) for note in exposures.few(verdict.notes)],
        "picture": _picture(parts, case),
        "steps": steps,
        "snapshots": [each for each in parts.snapshots if each.step > len(steps)],
        "findings_summary": findings_summary(case.groups, verdict, budget),
        "findings_cut": bool(cut(verdict)),
        "groups": shown(case, budget),
        "explain": claims.explain(parts.folder, verdict),
        "attempts": attempt_rows(parts.past, parts.progressed, parts.counts),
        "manages_offsets": bool(parts.progressed.positions),
        "points": exposures.points(verdict),
        "outcome": claims.outcome(verdict),
        "baseline_runs": parts.baseline_runs,
        "baseline_summary": _baseline_summary(len(parts.baseline_runs)),
        "claim": claims.claim(verdict, case.guarantee),
        "limits": claims.limits(verdict, parts.run),
        "again": claims.again(parts.folder, parts.run, verdict),
        "after_change": command.typed(parts.run),
        "claimed": claims.details(parts.plan),
        "changes": claims.changes(parts.run, parts.history),
        "settings": _settings(parts.run, budget),
        "file": _lines(parts.scenario_file, budget.lines),
        "events": [(line, _details(line.event)) for line in events[: budget.events]],
        "events_summary": _left_out(len(events) - budget.events, len(parts.history)),
        "logs": parts.logs,
    }


def open_end(parts: Parts) -> NotCaughtUp | None:
    """Return why the run is inconclusive, where it did not catch up."""
    more = {name: getattr(parts, name) for name in ("run", "plan", "progressed", "counts", "starved")}
    return not_caught_up(ran(parts.verdict, parts.history, **more))


def _picture(parts: Parts, case: Case) -> Picture | None:
    if not parts.history:
        return None
    setting = Setting(
        impacts=case.impacts,
        executors=parts.plan.pipeline.executors,
        servers=claims.servers(parts.plan),
        batches=frozenset(batch for group in case.groups for batch in group.batches),
        saved=range_count(parts.progressed.positions) if parts.progressed.positions else "",
    )
    rows = parts.verdict.counts.get("sink_rows")
    return picture(parts.past, setting, curves(parts.past, parts.progressed, parts.counts, sink_rows=rows))


def _steps(parts: Parts) -> list[StepText]:
    seen = {each.step: each for each in parts.snapshots}
    lasted = {fault.number: (fault.begin, fault.end) for fault in parts.past.faults}
    return [
        StepText(
            number=number,
            step=step,
            batch=_batch(step, parts.progressed.positions),
            at=_when(step, lasted.get(number)),
            evidence=evidence_lines(step.evidence) or ["none"],
            exposures=exposures.of_step(parts.verdict, number) + _counted(parts.verdict, number),
            snapshot=seen.get(number, SnapshotText(step=number, lines=[])),
        )
        for number, step in enumerate(parts.verdict.steps, 1)
    ]


def _counted(verdict: Verdict, number: int) -> list[str]:
    """Return at which crash points an injection counts, where a failpoint of the program has another name for the
    place."""
    step = verdict.steps[number - 1]
    own = dict.fromkeys(each.point for each in verdict.exposures if each.step == number and each.counts)
    if step.crash_point is not None or not own:
        return []
    points = listed([f"“{visible(point, 80)}”" for point in own])
    return [f"the crash points below list it under {points}: so sink and checkpoint stood when it was injected"]


def _batch(step: StepOutcome, positions: Sequence[Position]) -> str:
    """Return its batch. A pipeline that manages its own offsets has the program's own number, and the offset ranges of
    this page."""
    if not positions:
        return "-" if step.batch is None else str(step.batch)
    own = "" if step.batch is None else f"{step.batch} by the program's own count"
    return "; ".join(text for text in (own, saved_at(positions, step.attempt) if step.injected else "") if text) or "-"


def _when(step: StepOutcome, lasted: tuple[float, float] | None) -> str:
    """From when the harness first saw the fault's effect until it was done with it."""
    if step.at_s is None:
        return "-"
    if lasted is None or f"{lasted[0]:.2f}" == f"{lasted[1]:.2f}":
        return f"{step.at_s:.2f} s"
    return f"{lasted[0]:.2f} to {lasted[1]:.2f} s"


def _baseline_summary(count: int) -> str:
    if not count:
        return "No baseline run was made. One is made only where something is found."
    return f"{plural(count, 'baseline run')} of the same input without faults; what each showed is in the findings."


SETTINGS = (("stack", "The stack"), ("outcome", "How the run ended"))
HIDDEN = frozenset({"scenario", "stage", "changes"})


def _settings(run: Mapping[str, Any], budget: Budget) -> list[tuple[str, list[tuple[str, str]]]]:
    """`run.json`, divided into what is read together, each under its title."""
    apart = {name for name, _ in SETTINGS}
    rest = {name: part for name, part in run.items() if name not in HIDDEN | apart}
    # The steps stand above, with their evidence.
    ended = {name: part for name, part in claims.mapping(run.get("outcome")).items() if name != "steps"}
    kept = {name: run[name] for name, _ in SETTINGS if name in run} | ({"outcome": ended} if ended else {})
    changes = claims.mappings(run.get("changes"))
    given = [(str(each.get("name")), f"{each.get('value')} ({each.get('why')})") for each in changes]
    out = [("Versions, seed and program", dictionary(rest)), ("What Onceproof gave to Spark", given)]
    out += [(title, _plain_names(dictionary(kept[name]))) for name, title in SETTINGS if name in kept]
    return [(title, lines[: budget.settings]) for title, lines in out if lines]


PLAIN = {
    "caught_up": "every record committed, and the sinks at rest",
    "reasons": "reasons",
    "stalled": "stalled",
    "error": "error",
    "deaths": "deaths of the driver",
    "quiet_period_s": "how long a sink without all its rows had to stay unchanged, in seconds",
    "gap_s": "longest time without a commit in one attempt, in seconds",
    "stateful": "queries that keep state",
}
"""What keys of run.json are called on the page."""


def _plain_names(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(PLAIN.get(name, name), text) for name, text in lines]


def _shown_events(history: Sequence[Line]) -> list[Line]:
    """Without what the agent reports, what stands elsewhere on the page, and the counting events but the last one."""
    last = next((line for line in reversed(history) if isinstance(line.event, Sent)), None)
    rest = (line for line in history if line.event.by is not By.SPARK and not isinstance(line.event, ProgressRead))
    return [line for line in rest if not isinstance(line.event, Sent) or line is last]


def _details(event: Event) -> str:
    # The page shows the snapshot elsewhere.
    event = replace(event, snapshot=None) if isinstance(event, SinkRead) else event
    fields = {name: part for name, part in flat(event).items() if name not in NOT_SHOWN and part is not None}
    return ", ".join(f"{name}: {text}" for name, text in dictionary(fields) if text)


def _left_out(more: int, total: int) -> str:
    if total == 0:
        return "The history is empty."
    left = f" {plural(more, 'line')} more are in history.jsonl." if more > 0 else ""
    return f"From the run's history; seconds since the run began, by a clock that never jumps.{left}"


def _lines(text: str, most: int) -> list[str]:
    # Only real line ends count: a form feed or U+2028 must not break a line that an editor shows whole.
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n") if text else []
    left = len(lines) - most
    return lines[:most] + ([f"… {plural(left, 'line')} more in scenario.yaml"] if left > 0 else [])
