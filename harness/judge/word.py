"""Rule 7: from the findings and reasons of all sinks to the worst word.

violated      a finding breaks the guarantee, and baseline runs agree about it
error         the scenario, the program or the harness is wrong, and no verdict is possible
untested      no step counts, or something that makes a run a test is missing
inconclusive  the evidence does not tell
held          the run was a test, and nothing broke the guarantee
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.scenario import COMMITTING, CrashPoint, Evidence, Expected, Finding, StepOutcome, Word

IN_BATCH = (CrashPoint.BATCH_PLANNED, CrashPoint.SINK_COMMITTING, CrashPoint.SINK_COMMITTED)
"""The crash points at which a batch is planned and not committed."""
SEVERITY = (Word.VIOLATED, Word.ERROR, Word.UNTESTED, Word.INCONCLUSIVE, Word.HELD)


class Untested(NamedTuple):
    """Why a run is no test. `meant`: nothing was exposed in a sound run, or the scenario has nothing to compare.
    `partial`: the run never holds, and what a fault broke shows all the same."""

    words: str
    meant: bool = False
    partial: bool = False


class Reasons(NamedTuple):
    """Why the word is no better than it is. `gone`: a fault took away for good what every pipeline needs, and nothing
    else is open."""

    error: Sequence[str] = ()
    untested: Sequence[Untested] = ()
    inconclusive: Sequence[str] = ()
    gone: bool = False


def word(violating: Collection[Finding], reasons: Reasons) -> Word:
    """Return the worst word that the findings and reasons come to."""
    words = [
        *([Word.VIOLATED] if violating else []),
        *([Word.ERROR] if reasons.error else []),
        *([Word.UNTESTED] if reasons.untested else []),
        *([Word.INCONCLUSIVE] if reasons.inconclusive else []),
    ]
    return min(words, key=SEVERITY.index, default=Word.HELD)


def unexpected(found: Word, violating: Sequence[Finding], reasons: Reasons, expected: Expected, *, sound: bool) -> str:
    """Return why a verdict is not the expected one; empty if it is. `sound`: where no step counts, nothing else is
    wrong with the run."""
    kinds = {finding.kind for finding in violating}
    if found is not expected.word:
        return f"{expected.word} was expected"
    if found is Word.VIOLATED:
        if kinds != {*expected.kinds}:
            return f"other kinds were expected: {', '.join(expected.kinds)}"
        if not all(each.partial for each in reasons.untested):
            return "the run was no test"
        return _unexplained(violating, expected)
    if found is Word.INCONCLUSIVE and not reasons.gone:
        return "inconclusive was expected for what a fault took away for good, and something else is open"
    if found is Word.UNTESTED and not sound:
        return "untested was expected because nothing was to be exposed, and something else is wrong with the run"
    return ""


def _unexplained(violating: Sequence[Finding], expected: Expected) -> str:
    if expected.without_faults:
        found = any(finding.without_faults for finding in violating)
        return "" if found else "the violation was expected without faults too; no baseline run shows it"
    found = any(finding.faults for finding in violating)
    return "" if found else "no step of the schedule is known to have caused the violation"


def missed(steps: Sequence[StepOutcome], scheduled: int) -> Iterator[Untested]:
    """Yield why steps of the schedule prove nothing."""
    if not scheduled:
        yield Untested("no fault in the schedule: nothing was tested", meant=True)
    if len(steps) < scheduled:
        yield Untested(f"only {len(steps)} of {scheduled} steps of the schedule have an outcome")
    for step in steps:
        if why := _missed(step):
            yield Untested(f"step `{step.name}` {why}", meant=not (step.evidence.struck or step.injected))


def _missed(step: StepOutcome) -> str:
    """Return why a step proves nothing; empty if it was injected and its evidence bears that out."""
    if not step.injected:
        return f"was not injected: {step.evidence.note}" if step.evidence.note else "was not injected"
    if step.evidence == Evidence():
        return "says that it was injected and has no evidence"
    return misplaced(step)


def misplaced(step: StepOutcome) -> str:
    """Return why the checkpoint did not stand at the crash point of a step; empty if nothing says so."""
    logs = _checkpoint_at_fault(step.evidence)
    planned = step.batch in logs.get("offsets", ())
    if step.crash_point in (CrashPoint.BATCH_PLANNING, CrashPoint.BLOCK_RECEIVED) and planned:
        return f"came too late: batch {step.batch} is in the offset log"
    if step.batch is None or step.crash_point not in IN_BATCH:
        return ""
    if step.batch in logs.get("commits", ()):
        return f"came too late: batch {step.batch} is in the commit log"
    if "offsets" in logs and not planned:
        return f"came too early: batch {step.batch} is not in the offset log"
    if step.crash_point is CrashPoint.SINK_COMMITTING and step.batch not in logs.get(COMMITTING, ()):
        return f"came too late: the sink's commit of batch {step.batch} was no longer being written"
    return ""


def _checkpoint_at_fault(evidence: Evidence) -> Mapping[str, tuple[int, ...]]:
    """Return the checkpoint as the fault met it: afterwards if the driver was killed, for only such a one leaves it
    alone."""
    killed = evidence.driver_status is not None and not evidence.stop_requested
    return evidence.checkpoint_after if killed else evidence.checkpoint_before


def uncompared(
    counts: Mapping[str, int], planted: Mapping[str, bool], *, compared: bool, lost: bool
) -> Iterator[Untested]:
    """Yield why the comparison says nothing. `compared`: the scenario has a sink that can be read; `lost`: what the
    sinks lack is a finding."""
    if not counts.get("records"):
        yield Untested("the source holds no record")
    if not counts.get("acknowledged"):
        yield Untested("no record was acknowledged")
    expected, found = counts.get("expected_rows", 0), counts.get("sink_rows", 0)
    if not expected or not (found or lost):
        yield Untested(f"nothing to compare: {expected} rows expected, {found} found", meant=not compared)
    if unseen := [name for name, seen in planted.items() if not seen]:
        yield Untested(f"the comparison missed planted faults: {', '.join(unseen)}")
    if not planted:
        yield Untested("no error was planted to test the checker", meant=not compared)
