"""Item 8: slow, or dead by itself, is not stalled by a fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Kind
from tests.corpus.case import adversary, error, inconclusive, violated
from tests.corpus.run_builder import RunBuilder, blame

STALLED = violated(Kind.STALLED, 1, blame(1))


def stall(run: RunBuilder, *, kind: str = "idle") -> None:
    """Nothing was committed for a minute and a half, and ten records wait."""
    run.injection(1)
    run.progress = 30
    run.tables = [run.rows((0, 30))]
    words = "nothing was committed in the last 91 s" if kind == "idle" else "the driver died 6 times in vain"
    run.outcome = {"caught_up": False, "stalled": {"kind": kind, "idle_s": 91.0, "words": words}}


@adversary(8, inconclusive("no stall for an interval of 120 s"))
def trigger_interval_of_two_minutes(run: RunBuilder) -> None:
    """The program's trigger fires every two minutes, and says so."""
    stall(run)
    run.claim(pipeline=replace(run.scenario.pipeline, interval_s=120.0))


@adversary(8, inconclusive("without faults it went 60 s without a commit"), twin=STALLED)
def as_slow_without_faults(run: RunBuilder) -> Iterator[str]:
    """The pipeline declares no interval, and goes a minute without a commit without faults."""
    stall(run)
    run.calm_gap_s = 60.0
    run.calm()
    yield "without faults it never goes five seconds without one"
    run.calm_gap_s = 5.0


@adversary(
    8,
    inconclusive("nothing was committed in the last 91 s; only 1 of 3 baseline run", baseline_runs_needed=2),
    twin=STALLED,
)
def nothing_to_hold_it_against(run: RunBuilder) -> Iterator[str]:
    """Nobody knows how long this pipeline may go without a commit."""
    stall(run)
    yield "three baseline runs show it"
    run.calm()


@adversary(8, error("does not work without faults either"), twin=STALLED)
def dies_by_itself(run: RunBuilder) -> Iterator[str]:
    """Six deaths that the schedule did not cause: a program that crashes on a record crashes without faults too."""
    stall(run, kind="gave up")
    run.calm(*["the driver died 6 times: KeyError: 'amount'"] * 2)
    yield "without faults it gets done"
    run.calm()


@adversary(8, inconclusive("without faults it failed in 1 of 3 baseline runs too"), twin=STALLED)
def dies_by_itself_now_and_then(run: RunBuilder) -> Iterator[str]:
    """It gave up, and the first baseline run got done; the third one gave up as well."""
    stall(run, kind="gave up")
    run.calm([], [], "the driver died 6 times: KeyError: 'amount'")
    yield "all three get done"
    run.calm()


@adversary(
    8,
    inconclusive("it failed in 1 of 1 baseline runs", baseline_runs_needed=2),
    twin=error("does not work without faults either"),
)
def a_baseline_run_that_did_not_come_up(run: RunBuilder) -> Iterator[str]:
    """On a busy machine its query had not begun in time: that once says nothing of the program."""
    stall(run, kind="gave up")
    run.calm("asked for the query to begin; saw nothing within 60 s")
    yield "nor had the one of a second baseline run"
    run.calm(*["asked for the query to begin; saw nothing within 60 s"] * 2)


@adversary(8, inconclusive("did not come back, so no pipeline could go on"), twin=STALLED)
def a_key_that_never_counts_again(run: RunBuilder) -> Iterator[str]:
    """A fault took the program's login away for good: each attempt was refused, until none was started any more."""
    stall(run, kind="gave up")
    run.calm()
    healed = run.steps[0]
    run.steps[0] = replace(healed, evidence=replace(healed.evidence, healed=False))
    yield "its login counts again, and it stops all the same"
    run.steps[0] = healed


def taken_away(run: RunBuilder, number: int, *, yes: bool = True) -> None:
    """What a step took away does not come back."""
    step = run.steps[number - 1]
    run.steps[number - 1] = replace(step, evidence=replace(step.evidence, healed=not yes))


@adversary(8, STALLED, twin=inconclusive("did not come back, so no pipeline could go on"))
def stalled_before_the_key_was_rotated(run: RunBuilder) -> Iterator[str]:
    """Nothing was committed for a minute and a half after the kill. Then the login was taken away for good: that is no
    excuse for the time before."""
    stall(run)
    run.calm_gap_s = 5.0
    run.calm()
    run.injection(1, attempt=2, at_s=100.0)
    taken_away(run, 2)
    yield "it was taken away two seconds after the kill"
    run.found(2, at_s=5.0)


@adversary(
    8,
    error("does not work without faults either"),
    twin=inconclusive("did not come back, so no pipeline could go on"),
)
def dies_by_itself_and_its_key_was_rotated(run: RunBuilder) -> Iterator[str]:
    """A fault took the program's login away for good, and without faults it does not get done either."""
    stall(run, kind="gave up")
    taken_away(run, 1)
    run.calm(*["the driver died 6 times: KeyError: 'amount'"] * 2)
    yield "without faults it gets done"
    run.calm()
