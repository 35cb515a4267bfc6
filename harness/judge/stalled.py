"""Whether the pipeline stalled, or is slow: records outstanding and no progress, beyond what it declares or needed
without faults.

A time without a commit is a stall only if it is longer than the declared `interval` allows. It must also be longer than
a baseline run needed, its start included. A program that exits by itself is stalled by a fault only if it ends well
without faults.

Where a fault took away for good what every program needs, a stall says nothing, unless it began before. Nor does that
of a program that ended well where only failed ones are restarted: elsewhere a scheduler would have restarted it. Nor
does that of a DStreams program that made its checkpoint again: it may have passed over for good what is outstanding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.judge.baseline_runs import BASELINE_RUNS_MAX, FAILED_MIN, SLOWER, BaselineRun
from harness.judge.injections import Injection, moved
from harness.judge.late_log import late_log
from harness.judge.read_folder import Run
from harness.scenario import Finding, Kind
from harness.snapshot import ENDED_WELL, GAVE_UP, Progressed

MADE_AGAIN = "the DStreams program made its checkpoint again, and it is not known which records it has passed over"
NO_SCHEDULER = "a program that ends well is not started again there; what another attempt would have done is not known"


@dataclass(frozen=True, kw_only=True)
class Stall:
    """What is said of a stall. `findings` is its finding, if it is one; `baseline_runs_needed` counts the baseline runs
    that it needs in all; `gone`: a fault took away for good what every pipeline needs."""

    findings: Sequence[Finding] = ()
    unknown: Sequence[str] = ()
    error: Sequence[str] = ()
    baseline_runs_needed: int = 0
    gone: bool = False


def stalled(run: Run, injections: Sequence[Injection], baseline_runs: Sequence[BaselineRun]) -> Stall:
    """Return what the run's outcome says of a stall, held against the declared interval and the baseline runs."""
    stall = run.outcome.stalled
    if stall is None:
        return Stall()
    words, idle_s, dead = stall.words, stall.idle_s, stall.kind == GAVE_UP
    if stall.kind == ENDED_WELL:
        return _failed(words, baseline_runs) or Stall(unknown=[f"{words}; {NO_SCHEDULER}"])
    if not dead and _anew(run.progressed):
        return _failed(words, baseline_runs) or Stall(unknown=[f"{words}; {MADE_AGAIN}"])
    finding = Finding(kind=Kind.STALLED, sink="", position=-1, note=words)
    since, interval = _since(run, injections), run.scenario.pipeline.interval_s
    longest = max((baseline_run.gap_s for baseline_run in baseline_runs), default=0.0)
    if away := next((injection for injection in since if _took(injection)), None):
        idle_s, since, dead = _idle_s(since, away), _before(since, away), False
        if idle_s <= SLOWER * (longest if interval is None else interval):
            return _failed(words, baseline_runs) or _gone(words, away.label)
    # What no attempt needed at once the next one may need.
    elif gone := [
        step.name for step in run.steps if not step.injected and step.evidence.signalled and not step.evidence.healed
    ]:
        return _failed(words, baseline_runs) or _gone(words, gone[0])
    labels = tuple(injection.label for injection in since)
    if not dead and (late := late_log(run, injections)):
        return Stall(unknown=[f"{words}; {late}"])
    sure = len(since) == 1 and (since[0].died or _planned(since[0]) is not None)
    blamed = replace(finding, faults=labels) if sure else replace(finding, fits=labels)
    declared = interval is not None and not dead
    if interval is not None and declared and idle_s <= SLOWER * interval:
        return Stall(unknown=[f"{words}; that is no stall for an interval of {interval:g} s"])
    if failed := _failed(words, baseline_runs):
        return failed
    if any(baseline_run.open for baseline_run in baseline_runs):
        return Stall(unknown=[f"{words}; a baseline run without faults did not get done either"])
    if baseline_runs and not dead and idle_s <= SLOWER * longest:
        return Stall(unknown=[f"{words}; without faults it went {longest:g} s without a commit"])
    # A program that dies or hangs may do so now and then, with or without faults.
    baseline_runs_needed = len(baseline_runs) + 1 if len(baseline_runs) < BASELINE_RUNS_MAX else 0
    if baseline_runs_needed and declared:
        return Stall(findings=[finding], baseline_runs_needed=baseline_runs_needed)
    if baseline_runs_needed:
        why = "no baseline run shows how long it takes without faults: name `pipeline.interval`, or run it again"
        made = f"only {len(baseline_runs)} of {BASELINE_RUNS_MAX} baseline runs were made" if baseline_runs else why
        return Stall(unknown=[f"{words}; {made}"], baseline_runs_needed=baseline_runs_needed)
    return Stall(findings=[blamed])


def _anew(progressed: Progressed) -> bool:
    """Return whether the newest attempt's DStreams program made its checkpoint again."""
    newest = max((attempt for query in progressed.queries for attempt in query.first), default=0)
    return any(query.made_again and newest in query.first for query in progressed.queries)


def _gone(words: str, label: str) -> Stall:
    lasting = f"what {label} took away did not come back, so no pipeline could go on"
    return Stall(unknown=[f"{words}; {lasting}"], gone=True)


def _failed(words: str, baseline_runs: Sequence[BaselineRun]) -> Stall | None:
    """Return what baseline runs that failed say of it; None if none did."""
    failed = [baseline_run for baseline_run in baseline_runs if baseline_run.error]
    usable = any(baseline_run.usable for baseline_run in baseline_runs)
    if failed and not usable and len(failed) < FAILED_MIN:
        again = f"without faults it failed in {len(failed)} of {len(baseline_runs)} baseline runs"
        baseline_runs_needed = len(baseline_runs) + 1 if len(baseline_runs) < BASELINE_RUNS_MAX else 0
        return Stall(unknown=[f"{words}; {again}: {failed[0].error}"], baseline_runs_needed=baseline_runs_needed)
    if failed and not usable:
        return Stall(error=[f"the pipeline does not work without faults either: {failed[0].error}"])
    if failed:
        often = f"without faults it failed in {len(failed)} of {len(baseline_runs)} baseline runs too"
        return Stall(unknown=[f"{words}; {often}: {failed[0].error}"])
    return None


def _took(injection: Injection) -> bool:
    """Return whether it took away for good what every program needs, and a process was affected."""
    return injection.outcome.evidence.struck and not injection.outcome.evidence.healed


def _before(since: Sequence[Injection], away: Injection) -> list[Injection]:
    """Return the steps before it after which nothing was committed by then, as far as both readings say."""
    return [
        injection
        for injection in since[: since.index(away)]
        if _done(injection) is not None and _done(injection) == _done(away)
    ]


def _idle_s(since: Sequence[Injection], away: Injection) -> float:
    """Return how long, by then, nothing had been committed after a step before it; 0 if that is not known."""
    began = [injection.at.snapshot.at_s for injection in _before(since, away) if injection.at is not None]
    return away.at.snapshot.at_s - min(began) if began and away.at is not None else 0.0


def _since(run: Run, injections: Sequence[Injection]) -> list[Injection]:
    """Return the steps that may have done it: those after which no other attempt committed anything, nor the same one
    before the next step. Empty if the pipeline survived each of them."""
    progressed = run.progressed
    worked = {max(b.attempts) for query in progressed.queries for b in query.batches if b.committed and b.attempts}
    last = max(worked | moved(progressed), default=0)
    late = [injection for injection in injections if injection.outcome.attempt >= last]
    left = [
        injection
        for place, injection in enumerate(late)
        if not any(_survived(injection, each) for each in late[place + 1 :])
    ]
    return [injection for injection in left if not _outlived(injection, progressed)]


def _outlived(injection: Injection, progressed: Progressed) -> bool:
    """Return whether the driver lived, and committed more afterwards than what it had in flight when the fault was
    injected."""
    planned = _planned(injection)
    if injection.died or planned is None:
        return False
    at_s = injection.at.snapshot.at_s if injection.at is not None else injection.outcome.at_s or 0.0
    later = (
        batch.committed and batch.batch > planned.get(query.checkpoint, batch.batch)
        for query in progressed.queries
        for batch in query.batches
    )
    moves = [p for p in progressed.positions if p.attempt == injection.outcome.attempt and p.at_s > at_s]
    return any(later) or len(moves) > 1


def _planned(injection: Injection) -> dict[str, int] | None:
    """Return the newest batch that each query had planned when the fault was injected. The snapshot says it, or the
    evidence of the query that was struck; None if that is not known."""
    if injection.at is not None:
        return {state.checkpoint: max(state.offsets, default=-1) for state in injection.at.snapshot.queries}
    after = injection.outcome.evidence.checkpoint_after
    return {injection.outcome.checkpoint: max(after.get("offsets", ()), default=-1)} if after else None


def _survived(one: Injection, other: Injection) -> bool:
    """Return whether something was committed between two steps in one attempt."""
    return one.outcome.attempt == other.outcome.attempt and _done(one) != _done(other)


def _done(injection: Injection) -> object:
    """Return what was committed when the fault was injected; None where there is no reading."""
    snapshot = injection.at.snapshot if injection.at is not None else None
    return snapshot and (snapshot.position, {state.checkpoint: state.committed for state in snapshot.queries})
