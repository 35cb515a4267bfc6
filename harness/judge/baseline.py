"""Rule 5: what baseline runs show of the findings. They have the same pipeline, input and sinks, and no fault.

What all of them show alike is "also without faults". No finding violates before one baseline run got done. Where they
agree in its kind in its sink, and none shows a finding, a fault did it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from harness.judge.baseline_runs import BASELINE_RUNS_MAX, FAILED_MIN, BaselineRun, Signature, signature
from harness.scenario import MISFITS, Finding, Kind


class Shown(Enum):
    """What baseline runs show of a finding: of its kind, in its sink.

    `CLEAN`: they agree, the run has all that they show, and none shows this one, or each with fewer copies. `ALIKE`:
    all show it. `OTHERS`: each shows others, which differ from run to run. `DIFFERS`: some show that kind, some do not.
    `NONE`: none got done."""

    NONE = auto()
    CLEAN = auto()
    OTHERS = auto()
    ALIKE = auto()
    DIFFERS = auto()


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The baseline runs of a run."""

    runs: Sequence[BaselineRun] = ()
    marks: frozenset[Signature] = frozenset()
    """What the findings of the run are about."""

    @property
    def usable(self) -> list[BaselineRun]:
        """Those that got done."""
        return [baseline_run for baseline_run in self.runs if baseline_run.usable]

    @property
    def failed(self) -> str:
        """Why the pipeline does not work without faults either; empty if it does, or one may have failed by chance."""
        failed = [baseline_run.error for baseline_run in self.runs if baseline_run.error]
        return failed[0] if not self.usable and len(failed) >= FAILED_MIN else ""

    def shown(self, finding: Finding) -> Shown:
        """Return what the baseline runs show of a finding."""
        mark, usable = signature(finding), self.usable
        if not usable:
            return Shown.NONE
        sets = [{m: f.found for m, f in baseline_run.findings.items() if m[:2] == mark[:2]} for baseline_run in usable]
        if all(each == sets[0] for each in sets) and self.marks.issuperset(sets[0]):
            if mark not in sets[0]:
                return Shown.CLEAN
            counted = finding.kind in (Kind.LOST, Kind.DUPLICATED)
            more = counted and all(each.findings[mark].copies < finding.copies for each in usable)
            return Shown.CLEAN if more else Shown.ALIKE
        if all(mark in each for each in sets) and mark[1] not in MISFITS:
            return Shown.ALIKE
        return Shown.OTHERS if all(sets) else Shown.DIFFERS

    def wanted(self, findings: Sequence[Finding]) -> int:
        """Return how many baseline runs there should be next: one more, as long as none is clean and there are fewer
        than three; 0 if no more."""
        if not findings or len(self.runs) >= BASELINE_RUNS_MAX:
            return 0
        kinds = {(position, kind) for baseline_run in self.usable for position, kind, _ in baseline_run.findings}
        if self.usable and kinds.isdisjoint((finding.position, finding.kind) for finding in findings):
            return 0
        if any(self.shown(finding) is Shown.DIFFERS for finding in findings):
            return 0
        return len(self.runs) + 1
