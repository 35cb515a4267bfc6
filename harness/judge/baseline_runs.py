"""The baseline runs in a run folder, each as its findings.

One is a run folder inside the run's own, `baseline/<k>/`: the same pipeline, input and sinks, and no fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.errors import HarnessError, UsageError
from harness.judge.read_folder import Run, read_json, read_run
from harness.scenario import Finding, Kind

BASELINE_RUNS_MAX = 3
FAILED_MIN = 2
"""So many baseline runs have to fail, and none get done, before the program is said not to work without faults: one may
fail to come up on a machine that is busy."""
SLOWER = 3.0
"""A pipeline may go that much longer without a commit than it did without faults."""
Signature = tuple[int, Kind, tuple[tuple[str, str | None], ...]]


@dataclass(frozen=True, kw_only=True)
class BaselineRun:
    """One baseline run: its findings by what they are about. `error` says why the pipeline without faults did not work.
    `open`: it did not get done, or a sink of it could not be compared. What it does not show says nothing then."""

    number: int
    findings: Mapping[Signature, Finding] = field(default_factory=dict)
    error: str = ""
    open: bool = False
    gap_s: float = 0.0

    @property
    def usable(self) -> bool:
        """Return whether it came to its end, and what it does not show can be used."""
        return not (self.open or self.error)


def signature(finding: Finding) -> Signature:
    """Return what a finding is about, in any run of the same scenario."""
    return finding.position, finding.kind, tuple(finding.key.items())


def read_baseline_runs(run: Run, findings: Callable[[Run], Sequence[Finding] | None]) -> list[BaselineRun]:
    """Return the baseline runs in the run's folder. `findings` judges one, and returns None for one that shows nothing.
    Raises HarnessError and UsageError for one that is damaged."""
    found = []
    for number in range(1, BASELINE_RUNS_MAX + 1):
        folder = run.folder / "baseline" / str(number)
        if not folder.is_dir():
            break
        found.append(_baseline_run(number, folder_run(run, number), findings))
    return found


def folder_run(run: Run, number: int) -> Run | str:
    """Return a baseline run's own folder, read; why not, if its pipeline did not get far enough to leave one."""
    folder = run.folder / "baseline" / str(number)
    try:
        return read_run(folder)
    except UsageError as failure:
        outcome = read_json(folder / "run.json").get("outcome")
        if isinstance(outcome, Mapping) and outcome.get("error"):
            return str(outcome["error"])
        raise HarnessError(f"{folder} is damaged: {failure}") from failure


def _baseline_run(number: int, run: Run | str, findings: Callable[[Run], Sequence[Finding] | None]) -> BaselineRun:
    if isinstance(run, str):
        return BaselineRun(number=number, error=run)
    if run.outcome.error:
        return BaselineRun(number=number, error=run.outcome.error)
    found = findings(run) if run.caught_up else None
    if found is None:
        return BaselineRun(number=number, open=True, gap_s=run.progressed.gap_s)
    by = {signature(finding): finding for finding in found if finding.kind is not Kind.RECOVERED}
    return BaselineRun(number=number, findings=by, gap_s=run.progressed.gap_s)
