"""Each finding with its cause, by rules 4 to 6: what explains it, what baseline runs show, what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.checkers.origin import joined
from harness.judge.baseline import Baseline, Shown
from harness.judge.cause import Explained
from harness.judge.exposure import Exposed
from harness.judge.guarantee import violates
from harness.judge.sinks import Compared, Explanation
from harness.scenario import MISFITS, Finding, Guarantee, Harm

ONLY_WITH = "only in runs with this fault"


@dataclass(frozen=True, kw_only=True)
class Attributed:
    """A finding with its cause. `violating` is None if the evidence does not tell."""

    finding: Finding
    shown: Shown
    violating: bool | None
    needs_baseline: bool
    """The verdict rests on what baseline runs show of it: a violation, or what a loss that is allowed may have done."""


def attributed(sink: Compared, baseline: Baseline, guarantee: Guarantee, labels: Mapping[int, str]) -> list[Attributed]:
    """Return the findings of one sink with their causes; `labels` are what steps are called."""
    out, unknown = [], any(step.unknown for step in sink.exposed)
    for place, finding in enumerate(sink.examined.findings):
        explanation = sink.explanations.get(place, Explanation())
        ways, candidates = explanation.ways, explanation.candidates
        shown = baseline.shown(finding)
        harms = {harm for way in ways for harm in way.harms} or {*finding.harms}
        struck = None if unknown and not ways else bool(candidates)
        answer = violates(finding, guarantee, harms=harms, options=explanation.options, shown=shown, struck=struck)
        # Where the expected rows are wrong, what differs from them is no violation.
        answer = False if sink.examined.reasons.error else answer
        needed = not sink.examined.reasons.error and (answer is not False or guarantee.allows is Harm.LOSS)
        found = _caused(finding, ways, candidates, shown, labels)
        out.append(Attributed(finding=found, shown=shown, violating=answer, needs_baseline=needed))
    return out


def _caused(
    finding: Finding,
    ways: Sequence[Explained],
    candidates: Sequence[Exposed],
    shown: Shown,
    labels: Mapping[int, str],
) -> Finding:
    if shown is Shown.ALIKE:
        return replace(finding, without_faults=True)
    if shown is Shown.OTHERS:
        return replace(finding, without_faults=True, note=joined(finding.note, "of other records in each baseline run"))
    sets = {way.steps for way in ways}
    steps = next(iter(sets)) if len(sets) == 1 else ()
    if shown is Shown.CLEAN and steps:
        return replace(finding, faults=tuple(labels[step] for step in steps))
    left = sorted({step for steps in sets for step in steps} or {step.injection.number for step in candidates})
    if shown is Shown.CLEAN and len(left) == 1:
        return replace(finding, faults=(labels[left[0]],), note=joined(finding.note, ONLY_WITH))
    return replace(finding, fits=tuple(labels[step] for step in left))


@dataclass(kw_only=True)
class AfterBaseline:
    """The findings compared with the baseline runs: those that are confirmed, those of them that break the guarantee,
    those that may be there without faults; and reasons."""

    confirmed: list[Finding] = field(default_factory=list)
    violating: list[Finding] = field(default_factory=list)
    doubtful: list[Finding] = field(default_factory=list)
    inconclusive: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def against(baseline: Baseline, findings: Sequence[Attributed]) -> AfterBaseline:
    """Return the findings held against the baseline runs."""
    out, ambiguous, uncompared = AfterBaseline(), 0, 0
    for each in findings:
        if each.needs_baseline and each.shown is Shown.NONE:
            uncompared += 1
            out.doubtful.append(each.finding)
        elif each.violating and each.shown is Shown.DIFFERS:
            out.doubtful.append(each.finding)
        else:
            out.confirmed.append(each.finding)
            out.violating += [each.finding] if each.violating else []
            ambiguous += each.violating is None
    if uncompared and baseline.failed:
        out.error.append(f"the pipeline does not work without faults either: {baseline.failed}")
    elif uncompared:
        made = f"none of {len(baseline.runs)} baseline runs got done" if baseline.runs else "no baseline run was made"
        out.inconclusive.append(f"{uncompared} findings may be there without faults too: {made}")
    if differing := len(out.doubtful) - uncompared:
        out.inconclusive.append(f"not deterministic without faults: baseline runs differ in {differing} findings")
    if ambiguous:
        out.inconclusive.append(f"{ambiguous} findings may hide what the guarantee forbids, or be what it allows")
    out.notes += [f"baseline run {each.number} did not work: {each.error}" for each in baseline.runs if each.error]
    _also_without_faults(out)
    return out


def _also_without_faults(out: AfterBaseline) -> None:
    also = [finding for finding in out.confirmed if finding.without_faults]
    if wrong := [finding for finding in also if finding.kind in MISFITS]:
        words = f"expected rows and pipeline do not fit: {len(wrong)} rows are {wrong[0].kind} in every baseline run"
        out.error.append(f"{words}. Mend the expected rows, or the pipeline")
        sinks = {finding.position for finding in wrong}
        out.violating = [each for each in out.violating if each.position not in sinks]
    elif also:
        out.notes.append(
            f"also without faults: {len(also)} findings, or others of their kind, show in every baseline run"
        )
