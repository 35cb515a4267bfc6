"""What control runs without faults say of findings that no snapshot explains, or not by themselves.

A control is a run folder inside the run's own, `controls/<k>/`: the same pipeline, input and sinks, and no fault. What
all of them show is not the fault's doing; what none of them shows stands; where they differ, nobody can tell. A loss is
explained by what is not there, before and after: so is one that has nothing to do with the fault, and one control has
to show that it is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.errors import HarnessError, UsageError
from harness.judge.read_folder import Run, read_json, read_run
from harness.scenario import MISFITS, Finding, Kind

CONTROLS_MAX = 3
FAILED_MIN = 2
"""So many control runs have to fail, and none get done, before the program is said not to work without faults: one may
fail to come up on a machine that is busy."""
SLOWER = 3.0
"""A pipeline may go that much longer without a commit than it did without faults."""
SHOWN = 5

Signature = tuple[int, Kind, tuple[tuple[str, str | None], ...]]


@dataclass(frozen=True, kw_only=True)
class Control:
    """One control run: its findings by what they are about. `error` says why the pipeline without faults did not work,
    `open` that it did not get done, or that a sink of it could not be compared: what it does not show says nothing
    then."""

    number: int
    findings: Mapping[Signature, Finding] = field(default_factory=dict)
    error: str = ""
    open: bool = False
    gap_s: float = 0.0

    @property
    def usable(self) -> bool:
        """Did it come to its end, and does what it does not show say something?"""
        return not (self.open or self.error)


@dataclass(kw_only=True)
class Decided:
    """What becomes of the findings: those that stand, those that may be nobody's, and the reasons. `gone`: nobody can
    tell because a fault took away for good what every program needs."""

    stand: list[Finding] = field(default_factory=list)
    doubtful: list[Finding] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    wants: int = 0
    gone: bool = False


def signature(finding: Finding) -> Signature:
    """What a finding is about, in any run of the same scenario."""
    return finding.position, finding.kind, tuple(finding.key.items())


def read_controls(run: Run, findings: Callable[[Run], Sequence[Finding] | None]) -> list[Control]:
    """The control runs that lie in the run's folder; `findings` judges one, and gives None for one that shows nothing.
    Raises HarnessError and UsageError for one that is damaged."""
    found = []
    for number in range(1, CONTROLS_MAX + 1):
        folder = run.folder / "controls" / str(number)
        if not folder.is_dir():
            break
        found.append(_control(number, folder_run(run, number), findings))
    return found


def folder_run(run: Run, number: int) -> Run | str:
    """A control's own folder, read; why not, if its pipeline did not get far enough to leave one."""
    folder = run.folder / "controls" / str(number)
    try:
        return read_run(folder)
    except UsageError as failure:
        outcome = read_json(folder / "run.json").get("outcome")
        if isinstance(outcome, Mapping) and outcome.get("error"):
            return str(outcome["error"])
        raise HarnessError(f"{folder} is damaged: {failure}") from failure


def _control(number: int, run: Run | str, findings: Callable[[Run], Sequence[Finding] | None]) -> Control:
    if isinstance(run, str):
        return Control(number=number, error=run)
    outcome: Mapping[str, Any] = run.outcome
    if outcome.get("error"):
        return Control(number=number, error=str(outcome["error"]))
    found = findings(run) if run.drained and not outcome.get("reasons") else None
    if found is None:
        return Control(number=number, open=True, gap_s=run.progressed.gap_s)
    by = {signature(finding): finding for finding in found if finding.kind is not Kind.RECOVERED}
    return Control(number=number, findings=by, gap_s=run.progressed.gap_s)


def decide(
    findings: Sequence[Finding],
    violating: Sequence[Finding],
    controls: Sequence[Control],
    acquitted: Sequence[Finding] = (),
) -> Decided:
    """Hold findings against the controls. `violating` are those that break the guarantee, or may; `acquitted` are
    allowed if the controls are without them."""
    out = Decided(stand=list(findings))
    usable = [control for control in controls if control.usable]
    explained = [finding for finding in (*violating, *acquitted) if finding.to_confirm]
    doubtful = [*_unexplained(violating), *_shown((*violating, *acquitted), usable)]
    failed = [control for control in controls if control.error]
    if not usable:
        # Nobody is blamed for what nothing confirms.
        out.stand = [replace(f, fits=f.faults, faults=()) if f.to_confirm else f for f in out.stand]
    if not usable and len(failed) >= FAILED_MIN and (doubtful or explained):
        out.error.append(f"the pipeline does not work without faults either: {failed[0].error}")
        return out
    out.notes += [f"control run {control.number} did not work: {control.error}" for control in failed]
    if not doubtful:
        return _confirmed(out, explained, controls, usable=bool(usable), acquitted=acquitted)
    same = _alike(usable, doubtful)
    if same and len(controls) < CONTROLS_MAX:
        out.wants = len(controls) + 1
    if same and len(usable) < CONTROLS_MAX:
        made = f"only {len(usable)} of {CONTROLS_MAX} control runs got done"
        why = made if controls else "no control run was made"
        out.unknown.append(f"{len(doubtful)} findings are explained by no hit, and {why}")
        out.stand, out.doubtful = _split(out.stand, doubtful)
        return out
    held = _held(findings, doubtful, usable, same)
    return replace(held, notes=[*out.notes, *held.notes])


def _shown(explained: Sequence[Finding], usable: Sequence[Control]) -> list[Finding]:
    """Those that hits explain and a control shows, or where a loss or a single row is to be confirmed and it shows
    another one of that kind in that sink: it is not without them."""
    exact = {mark for control in usable for mark in control.findings}
    kinds = {(position, kind) for position, kind, _ in exact}
    return [
        finding
        for finding in explained
        if finding.faults
        and (signature(finding) in exact or (finding.to_confirm and (finding.position, finding.kind) in kinds))
    ]


def _confirmed(
    out: Decided,
    explained: Sequence[Finding],
    controls: Sequence[Control],
    *,
    usable: bool,
    acquitted: Sequence[Finding],
) -> Decided:
    """No control shows what hits explain. One that is without it is enough; without any, nobody is acquitted, and once
    they have all been tried nobody is blamed."""
    if not explained or usable:
        return out
    out.wants = len(controls) + 1 if len(controls) < CONTROLS_MAX else 0
    why = f"none of {len(controls)} control runs got done" if controls else "no control run was made"
    if acquitted:
        out.unknown.append(f"{len(acquitted)} losses may be there without faults too: {why}")
    return out


def _unexplained(violating: Sequence[Finding]) -> list[Finding]:
    """The findings that need a control: of a kind that no hit explains in this sink, or that no hit so much as fits."""
    known = {(finding.position, finding.kind) for finding in violating if finding.faults}
    loose = [finding for finding in violating if not finding.faults]
    need = [finding for finding in loose if (finding.position, finding.kind) not in known or not finding.fits]
    return loose if need else []


def _alike(controls: Sequence[Control], about: Sequence[Finding]) -> bool:
    """Do they show the same, row by row, of those kinds in those sinks? Less than two always do."""
    kinds = {(finding.position, finding.kind) for finding in about}
    shown = [{mark: f.found for mark, f in control.findings.items() if mark[:2] in kinds} for control in controls]
    return all(each == shown[0] for each in shown)


def _split(findings: Sequence[Finding], doubtful: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    about = {signature(finding) for finding in doubtful}
    stand = [finding for finding in findings if signature(finding) not in about]
    return stand, [finding for finding in findings if signature(finding) in about]


def _held(findings: Sequence[Finding], doubtful: Sequence[Finding], controls: Sequence[Control], same: bool) -> Decided:
    """Finding by finding: what all controls show, what none does, and what is left open."""
    out = Decided()
    about = {signature(finding) for finding in doubtful}
    for finding in findings:
        mark = signature(finding)
        always = _always(mark, controls)
        if always and not _more(finding, controls):
            finding = replace(finding, without_faults=True, faults=(), fits=())
        elif same and mark in about and not always:
            finding = _compared(finding, controls)
        if always or same or mark not in about:
            out.stand.append(finding)
        else:
            out.doubtful.append(replace(finding, faults=(), fits=finding.faults or finding.fits))
    without_faults = [finding for finding in out.stand if finding.without_faults]
    if mismatches := [finding for finding in without_faults if finding.kind in MISFITS]:
        words = f"effect and pipeline do not fit: {len(mismatches)} rows are {mismatches[0].kind} in every control run"
        out.error.append(f"{words} without faults too. Mend the effect, or the pipeline")
    elif without_faults:
        words = f"also without faults: {len(without_faults)} findings show in every control run"
        out.notes.append(f"{words}, and no fault is blamed")
    if out.doubtful:
        keys = ", ".join(_key(finding) for finding in out.doubtful[:SHOWN])
        words = f"not deterministic without faults: the control runs differ, and {len(out.doubtful)} findings"
        out.unknown.append(f"{words} may be no fault's doing ({keys})")
    return out


def _compared(finding: Finding, controls: Sequence[Control]) -> Finding:
    """A finding that no control shows. One without any of that kind in that sink confirms it; if each has others,
    nobody is blamed, and nobody acquitted."""
    shown = [{(position, kind) for position, kind, _ in control.findings} for control in controls]
    if any((finding.position, finding.kind) not in kinds for kinds in shown):
        return replace(finding, calm=True)
    return replace(finding, faults=(), fits=finding.faults or finding.fits)


def _always(mark: Signature, controls: Sequence[Control]) -> bool:
    """Does every control show it, and where it is a wrong row, the same wrong row?"""
    shown = [control.findings[mark] for control in controls if mark in control.findings]
    alike = mark[1] not in MISFITS or all(each.found == shown[0].found for each in shown)
    return len(shown) == len(controls) and alike


def _more(finding: Finding, controls: Sequence[Control]) -> bool:
    """Are more rows missing, or too many, than any control shows? Then that is not all there without faults too."""
    shown = [control.findings[signature(finding)].copies for control in controls]
    return finding.kind in (Kind.LOST, Kind.DUPLICATED) and finding.copies > max(shown)


def _key(finding: Finding) -> str:
    return " ".join([str(finding.kind), *(f"{name}={cell}" for name, cell in finding.key.items())])
