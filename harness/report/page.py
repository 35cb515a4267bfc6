"""What the page of one run says, as plain texts: `build` turns the parts of a run folder into a `Page`.

Pure. The template only places these texts; it decides nothing. Bounds: `MOST_FINDINGS` findings in full,
`MOST_EVENTS` lines of timeline, `MOST_LINES` lines of the scenario file; what is left out is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness import __version__
from harness.report import claims, stakes
from harness.report.escape import dictionary, plural
from harness.report.failure_text import evidence_lines, meaning, place, title
from harness.report.row_diff import row_diff
from harness.report.snapshots import ControlText, SnapshotText
from harness.scenario import Finding, Kind, StepOutcome, Verdict, Word

MOST_FINDINGS = 50
MOST_EVENTS = 400
MOST_LINES = 300
# The proof of a step stands with the step.
UNTOLD = frozenset({"n", "at_s", "what", "evidence"})
MARKS = {Word.HELD: "✓", Word.VIOLATED: "✗", Word.VOID: "○", Word.UNKNOWN: "?", Word.ERROR: "!"}


@dataclass(frozen=True, kw_only=True)
class StepText:
    """One step of the schedule and its proof."""

    name: str
    point: str
    batch: str
    attempt: str
    hit: str
    at: str
    evidence: list[str]


@dataclass(frozen=True, kw_only=True)
class HitText:
    """What one hit put at stake."""

    title: str
    lines: list[str]


@dataclass(frozen=True, kw_only=True)
class PointsText:
    """The crash points of one sink."""

    sink: str
    points_hit: list[str]
    untried: list[str]


@dataclass(frozen=True, kw_only=True)
class LineText:
    """One column of the compared rows."""

    mark: str
    differs: bool
    column: str
    cells: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FindingText:
    """One finding with its rows side by side."""

    title: str
    place: list[str]
    heads: tuple[str, ...]
    lines: list[LineText]
    more: str


@dataclass(frozen=True, kw_only=True)
class EventText:
    """One line of the timeline."""

    at: str
    what: str
    details: str


@dataclass(frozen=True, kw_only=True)
class LogText:
    """The end of one log."""

    name: str
    lines: list[str]


@dataclass(frozen=True, kw_only=True)
class Page:
    """Every text of the page, in the order in which it is read."""

    scenario: str
    word: str
    mark: str
    meaning: str
    expect: str
    agreement: str
    claim: list[str]
    claimed: list[tuple[str, str]]
    steps: list[StepText]
    hits: list[HitText]
    points: list[PointsText]
    snapshots: list[SnapshotText]
    controls: list[ControlText]
    controls_said: str
    reasons: list[str]
    notes: list[str]
    outcome: list[tuple[str, str]]
    findings_said: str
    findings: list[FindingText]
    says: str
    limits: list[str]
    again: list[str]
    events: list[EventText]
    events_said: str
    settings: list[tuple[str, str]]
    file: list[str]
    logs: list[LogText]
    run_id: str
    started: str
    made_by: str = __version__


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a run folder holds. `folder` is its path as a command line would name it; `plan` the scenario as it ran."""

    folder: str
    run: Mapping[str, Any]
    verdict: Verdict
    plan: Mapping[str, Any]
    scenario_file: str
    journal: Sequence[Mapping[str, Any]]
    logs: Sequence[LogText] = ()
    snapshots: Sequence[SnapshotText] = ()
    controls: Sequence[ControlText] = ()


def build(parts: Parts) -> Page:
    """The page of one run."""
    verdict = parts.verdict
    events = _telling(parts.journal)
    return Page(
        scenario=str(parts.run.get("scenario", parts.plan.get("name", "a run without a name"))),
        word=verdict.word.value,
        mark=MARKS[verdict.word],
        meaning=meaning(verdict.word),
        expect=verdict.expect,
        agreement="The verdict is as expected." if verdict.as_expected else "The verdict is not as expected.",
        claim=claims.claim(parts.plan),
        claimed=claims.details(parts.plan),
        steps=[_step(step) for step in verdict.steps],
        hits=_hits(verdict),
        points=[
            PointsText(sink=each.sink or "-", points_hit=stakes.few(each.points_hit), untried=stakes.few(each.untried))
            for each in stakes.points(verdict)
        ],
        snapshots=[replace(each, title=_titled(verdict, each.step)) for each in parts.snapshots],
        controls=list(parts.controls),
        controls_said=_controls_said(len(parts.controls)),
        reasons=list(verdict.reasons),
        notes=stakes.few(verdict.notes),
        outcome=claims.outcome(verdict),
        findings_said=_findings_said(verdict.findings),
        findings=[_finding(finding, verdict.steps) for finding in _worst_first(verdict.findings)[:MOST_FINDINGS]],
        says=claims.says(verdict, str(parts.plan.get("guarantee", "exactly-once"))),
        limits=claims.limits(verdict, parts.run),
        again=claims.again(parts.folder, parts.run),
        events=[_event(event) for event in events[:MOST_EVENTS]],
        events_said=_left_out(len(events) - MOST_EVENTS, len(parts.journal)),
        settings=dictionary({name: part for name, part in parts.run.items() if name not in {"scenario", "stage"}}),
        file=_lines(parts.scenario_file),
        logs=list(parts.logs),
        run_id=str(parts.run.get("run_id", "without an id")),
        started=str(parts.run.get("started", "at an unknown time")),
    )


def _step(step: StepOutcome) -> StepText:
    return StepText(
        name=step.name,
        point=step.point or "-",
        batch="-" if step.batch is None else str(step.batch),
        attempt=str(step.attempt or "-"),
        hit="✓ hit" if step.hit else "✗ missed",
        at="-" if step.at_s is None else f"{step.at_s:.2f} s",
        evidence=evidence_lines(step.evidence) or ["none"],
    )


def _hits(verdict: Verdict) -> list[HitText]:
    lines = {number: stakes.of_step(verdict, number) for number in range(1, len(verdict.steps) + 1)}
    return [HitText(title=_titled(verdict, number), lines=own) for number, own in lines.items() if own]


def _titled(verdict: Verdict, number: int) -> str:
    if not 0 < number <= len(verdict.steps):
        return f"Step {number}: not in the schedule"
    step = verdict.steps[number - 1]
    return f"Step {number}: {step.name}{'' if step.hit else ', which missed'}"


def _controls_said(count: int) -> str:
    if not count:
        return "No control run was made. One is made only where the snapshots explain nothing."
    return f"{plural(count, 'control run')} of the same input without faults; what each showed is in the findings."


def _findings_said(findings: Sequence[Finding]) -> str:
    if not findings:
        return "None."
    if len(findings) <= MOST_FINDINGS:
        return f"{plural(len(findings), 'finding')}."
    return f"{plural(len(findings), 'finding')}, of which {MOST_FINDINGS} are shown; verdict.json has them all."


def _worst_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.kind is Kind.RECOVERED)


def _finding(finding: Finding, steps: Sequence[StepOutcome]) -> FindingText:
    both = row_diff(finding, pairs=3)
    where = "; ".join(place(finding, steps))
    return FindingText(
        title=title(finding),
        place=[text for text in (where, finding.note) if text],
        heads=both.heads,
        lines=[
            LineText(mark=line.mark, differs=line.mark != " ", column=line.column, cells=line.cells)
            for line in both.lines
        ],
        more=f"and {plural(both.more, 'more row')}; verdict.json has them all" if both.more else "",
    )


def _telling(journal: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Without the counting events, of which only the last one tells anything."""
    last = next((event for event in reversed(journal) if event.get("what") == "sent"), None)
    return [event for event in journal if event.get("what") != "sent" or event is last]


def _event(event: Mapping[str, Any]) -> EventText:
    at = event.get("at_s")
    details = dictionary({name: part for name, part in event.items() if name not in UNTOLD})
    return EventText(
        at=f"{at:.2f}" if isinstance(at, (int, float)) else "-",
        what=str(event.get("what", "?")),
        details=", ".join(f"{name}: {text}" for name, text in details if text not in {"", "None"}),
    )


def _left_out(more: int, total: int) -> str:
    if total == 0:
        return "The journal is empty."
    left = f" {plural(more, 'line')} more stand in journal.jsonl." if more > 0 else ""
    return f"From the run's journal; seconds since the run began, by a clock that never jumps.{left}"


def _lines(text: str) -> list[str]:
    # Only real line ends count: a form feed or U+2028 must not break a line that an editor shows whole.
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n") if text else []
    left = len(lines) - MOST_LINES
    return lines[:MOST_LINES] + ([f"… {plural(left, 'line')} more in scenario.yaml"] if left > 0 else [])
