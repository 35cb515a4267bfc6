"""Stalled, or slow: what the run's outcome says, held against the declared interval and the baseline runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.judge.baseline_runs import BaselineRun
from harness.judge.injections import Injection, Seen
from harness.judge.read_folder import Run, read_run
from harness.judge.stalled import Stall, stalled
from harness.scenario import Evidence, Finding, Kind, Pipeline, StepOutcome
from harness.snapshot import Batch, Position, Query, QueryState, Snapshot, Stalled
from tests.folders import INJECTED, Folder, payments

LABEL = "kill driver at sink-committed of batch 1, attempt 2"
EARLIER = "kill driver at sink-committed of batch 0, attempt 1"
FIRST, SECOND = (replace(INJECTED, batch=0, attempt=1), replace(INJECTED, attempt=2))
INJECTIONS = (Injection(number=1, outcome=FIRST), Injection(number=2, outcome=SECOND))
"""Two kills. The batch that was in flight at the second one is never committed."""
WORDS = "nothing was committed in the last 91 s"
OPEN = f"{WORDS}; a baseline run without faults did not get done either"
ONCE = f"{WORDS}; without faults it failed in 1 of 1 baseline runs: boom"
FAILED = "the pipeline does not work without faults either: boom"
WITHOUT_FAULTS = f"{WORDS}; without faults it went {{}} s without a commit"
BLAMED = Finding(kind=Kind.STALLED, sink="", position=-1, note=WORDS, faults=(LABEL,))


def run(path: Path, said: object, interval: float | None = None, *, committed_by: int = 2) -> Run:
    """A run whose first batch was committed by the attempt `committed_by`, and nothing else."""
    folder = Folder(path / "run", outcome={"stalled": said})
    folder.tables = [payments(folder.records)]
    folder.claim(pipeline=Pipeline(entry="p.py", interval_s=interval))
    batches = (
        Batch(batch=0, ranges={0: (0, 10)}, committed=True, attempts=tuple(range(1, committed_by + 1))),
        Batch(batch=1, ranges={0: (10, 20)}, committed=False, attempts=(2, 3)),
    )
    query = Query(checkpoint="checkpoint", batches=batches, first={1: 0, 2: 0, 3: 1})
    found = read_run(folder.write())
    return replace(found, progressed=replace(found.progressed, queries=(query,)))


def said(**changes: Any) -> dict[str, Any]:
    return {"kind": "idle", "idle_s": 91.0, "words": WORDS, **changes}


GAVE_UP = said(kind="gave up", idle_s=0.5)


def test_what_was_taken_for_good_and_missed_only_later_is_nobodys_stall(tmp_path: Path) -> None:
    found, baseline_runs = run(tmp_path, said()), [BaselineRun(number=number, gap_s=30.0) for number in (1, 2, 3)]
    assert stalled(found, INJECTIONS, baseline_runs).findings
    evidence = Evidence(signalled={"datanode": "back without its 3 blocks"}, struck=False, healed=False)
    felt_by_nobody = StepOutcome(name="lose blocks", point="", batch=1, injected=False, evidence=evidence)
    out = stalled(replace(found, steps=(*found.steps, felt_by_nobody)), INJECTIONS, baseline_runs)
    assert not out.findings
    assert "lose blocks took away did not come back" in out.unknown[0]


def test_no_word_of_a_stall_is_none(tmp_path: Path) -> None:
    assert stalled(run(tmp_path, None), INJECTIONS, []) == Stall()


@pytest.mark.parametrize(
    ("interval", "decided"),
    [
        (91.0 / 3, Stall(unknown=[f"{WORDS}; that is no stall for an interval of 30.3333 s"])),
        (120.0, Stall(unknown=[f"{WORDS}; that is no stall for an interval of 120 s"])),
    ],
)
def test_a_declared_interval_says_how_long_is_too_long(tmp_path: Path, interval: float, decided: Stall) -> None:
    for baseline_runs in ([], [BaselineRun(number=1, error="boom")], [BaselineRun(number=1, gap_s=900.0)]):
        assert (
            stalled(
                run(tmp_path / str(len(baseline_runs)) / str(baseline_runs), said(), interval),
                INJECTIONS,
                baseline_runs,
            )
            == decided
        )


@pytest.mark.parametrize(
    ("baseline_runs", "decided"),
    [
        ([], Stall(findings=[replace(BLAMED, faults=())], baseline_runs_needed=1)),
        ([BaselineRun(number=1, gap_s=30.0)], Stall(findings=[replace(BLAMED, faults=())], baseline_runs_needed=2)),
        (
            [BaselineRun(number=number, gap_s=30.0) for number in (1, 2)],
            Stall(findings=[replace(BLAMED, faults=())], baseline_runs_needed=3),
        ),
        ([BaselineRun(number=number, gap_s=30.0) for number in (1, 2, 3)], Stall(findings=[BLAMED])),
        ([BaselineRun(number=1, gap_s=60.0)], Stall(unknown=[WITHOUT_FAULTS.format(60)])),
        ([BaselineRun(number=1, error="boom")], Stall(unknown=[ONCE], baseline_runs_needed=2)),
        ([BaselineRun(number=number, error="boom") for number in (1, 2)], Stall(error=[FAILED])),
        (
            [BaselineRun(number=1, open=True)],
            Stall(unknown=[f"{WORDS}; a baseline run without faults did not get done either"]),
        ),
    ],
)
def test_a_stall_beyond_the_declared_interval_is_blamed_once_three_baseline_runs_got_done(
    tmp_path: Path, baseline_runs: list[BaselineRun], decided: Stall
) -> None:
    assert stalled(run(tmp_path, said(), 30.0), INJECTIONS, baseline_runs) == decided


@pytest.mark.parametrize(
    ("what", "baseline_run", "decided"),
    [
        (
            said(),
            BaselineRun(number=1, gap_s=30.0),
            Stall(unknown=[f"{WORDS}; only 1 of 3 baseline runs were made"], baseline_runs_needed=2),
        ),
        (said(), BaselineRun(number=1, gap_s=91.0 / 3), Stall(unknown=[WITHOUT_FAULTS.format("30.3333")])),
        (said(), BaselineRun(number=1, gap_s=100.0), Stall(unknown=[WITHOUT_FAULTS.format(100)])),
        (said(), BaselineRun(number=1, open=True), Stall(unknown=[OPEN])),
        (said(), BaselineRun(number=1, error="boom"), Stall(unknown=[ONCE], baseline_runs_needed=2)),
        (GAVE_UP, BaselineRun(number=1, error="boom"), Stall(unknown=[ONCE], baseline_runs_needed=2)),
    ],
)
def test_a_baseline_run_says_what_it_needs_without_faults(
    tmp_path: Path, what: object, baseline_run: BaselineRun, decided: Stall
) -> None:
    assert stalled(run(tmp_path, what), INJECTIONS, [baseline_run]) == decided


CALM, DEAD, ALSO = (
    BaselineRun(number=1, gap_s=100.0),
    BaselineRun(number=2, error="boom"),
    BaselineRun(number=3, error="bang"),
)
AGAIN = f"{WORDS}; without faults it failed in 1 of 3 baseline runs: boom"


@pytest.mark.parametrize(
    ("baseline_runs", "decided"),
    [
        ([CALM, CALM, CALM], Stall(findings=[BLAMED])),
        ([DEAD, DEAD, DEAD], Stall(error=[FAILED])),
        ([DEAD, ALSO], Stall(error=[FAILED])),
        ([BaselineRun(number=1, open=True), DEAD, BaselineRun(number=3, open=True)], Stall(unknown=[AGAIN])),
        (
            [CALM, CALM, DEAD],
            Stall(unknown=[f"{WORDS}; without faults it failed in 1 of 3 baseline runs too: boom"]),
        ),
        ([CALM, CALM, BaselineRun(number=3, open=True)], Stall(unknown=[OPEN])),
        ([CALM, CALM], Stall(unknown=[f"{WORDS}; only 2 of 3 baseline runs were made"], baseline_runs_needed=3)),
    ],
)
def test_who_gives_up_is_the_faults_victim_if_three_baseline_runs_live(
    tmp_path: Path, baseline_runs: list[BaselineRun], decided: Stall
) -> None:
    assert stalled(run(tmp_path, GAVE_UP), INJECTIONS, baseline_runs) == decided


CALMS = [CALM, CALM, CALM]


def blamed(out: Stall) -> tuple[tuple[str, ...], tuple[str, ...]]:
    (finding,) = out.findings
    return finding.faults, finding.fits


def test_of_two_injections_after_which_nothing_was_done_nobody_knows_which_did_it(tmp_path: Path) -> None:
    assert blamed(stalled(run(tmp_path, GAVE_UP, committed_by=1), INJECTIONS, CALMS)) == ((), (EARLIER, LABEL))
    assert blamed(stalled(run(tmp_path / "b", GAVE_UP, committed_by=2), INJECTIONS, CALMS)) == ((LABEL,), ())


def test_a_pipeline_that_got_something_done_after_every_injection_stopped_by_itself(tmp_path: Path) -> None:
    assert blamed(stalled(run(tmp_path, GAVE_UP, committed_by=3), INJECTIONS, CALMS)) == ((), ())


def test_offsets_of_its_own_that_moved_are_something_done(tmp_path: Path) -> None:
    moves = (Position(attempt=1, at_s=0.0, next={0: 0}), Position(attempt=3, at_s=9.0, next={0: 10}))
    still = (*moves[:1], replace(moves[1], next={0: 0}))
    alone = replace(run(tmp_path, GAVE_UP).progressed, queries=(), positions=moves)
    kept = run(tmp_path / "b", GAVE_UP)
    assert blamed(stalled(replace(kept, progressed=alone), INJECTIONS, CALMS)) == ((), ())
    stayed = replace(kept, progressed=replace(alone, positions=still))
    assert blamed(stalled(stayed, INJECTIONS, CALMS)) == ((), (EARLIER, LABEL))


def test_of_two_injections_in_one_attempt_the_one_that_was_survived_did_not_do_it(tmp_path: Path) -> None:
    pause = replace(INJECTED, name="pause driver", attempt=2)

    def injected(step: StepOutcome, committed: int) -> Injection:
        state = QueryState(checkpoint="checkpoint", committed={0: committed})
        snapshot = Snapshot(step=1, moment="injection", attempt=2, at_s=1.0, queries=(state,))
        return Injection(number=1, outcome=step, at=Seen(snapshot=snapshot, tables=()))

    seen = run(tmp_path, GAVE_UP)
    assert blamed(stalled(seen, (injected(pause, 0), injected(SECOND, 10)), CALMS)) == ((LABEL,), ())
    paused = LABEL.replace("kill", "pause")
    assert blamed(stalled(seen, (injected(pause, 10), injected(SECOND, 10)), CALMS)) == ((), (paused, LABEL))


def test_the_slowest_of_the_baseline_runs_counts(tmp_path: Path) -> None:
    slow = [replace(CALM, gap_s=1.0), replace(CALM, gap_s=91.0 / 3), replace(CALM, gap_s=2.0)]
    assert stalled(run(tmp_path, said()), INJECTIONS, slow) == Stall(unknown=[WITHOUT_FAULTS.format("30.3333")])
    brief = [replace(CALM, gap_s=1.0)] * 3
    assert stalled(run(tmp_path / "b", said()), INJECTIONS, brief) == Stall(findings=[BLAMED])


def test_without_interval_and_baseline_run_nobody_can_tell_and_one_is_asked_for(tmp_path: Path) -> None:
    why = "no baseline run shows how long it takes without faults: name `pipeline.interval`, or run it again"
    assert stalled(run(tmp_path, said()), INJECTIONS, []) == Stall(unknown=[f"{WORDS}; {why}"], baseline_runs_needed=1)


def test_a_program_that_dies_by_itself_is_not_excused_by_its_interval(tmp_path: Path) -> None:
    assert stalled(run(tmp_path, GAVE_UP, 0.1), INJECTIONS, []).baseline_runs_needed == 1
    dead = stalled(run(tmp_path / "b", GAVE_UP, 120.0), INJECTIONS, [CALM] * 3)
    assert dead == Stall(findings=[BLAMED])


def test_without_an_injection_no_step_is_blamed(tmp_path: Path) -> None:
    out = stalled(run(tmp_path, said()), (), [BaselineRun(number=1)] * 3)
    assert out.findings == [replace(BLAMED, faults=())]


def test_a_stall_whose_length_nobody_knows_is_unknown(tmp_path: Path) -> None:
    out = stalled(run(tmp_path, {"words": "it stood still"}), INJECTIONS, [BaselineRun(number=1)])
    assert out == Stall(unknown=["it stood still; without faults it went 0 s without a commit"])
    bare = stalled(run(tmp_path / "b", {"idle_s": 5}), INJECTIONS, [BaselineRun(number=1)] * 3)
    assert bare.findings == [replace(BLAMED, note="")]


def test_two_injections_of_one_attempt_that_nobody_looked_at_may_both_have_done_it(tmp_path: Path) -> None:
    twice = tuple(Injection(number=number, outcome=SECOND) for number in (1, 2))
    out = stalled(run(tmp_path, said()), twice, [BaselineRun(number=number, gap_s=1.0) for number in (1, 2, 3)])
    assert [(each.faults, each.fits) for each in out.findings] == [((), (LABEL, LABEL))]


LIVED = replace(INJECTED, name="kill executor", attempt=2, at_s=5.0, evidence=Evidence(signalled={"4711": "SIGKILL"}))
LIVED_LABEL = LABEL.replace("driver", "executor")
THIS_ONE, ANY_ONE, NO_ONE = ((LIVED_LABEL,), ()), ((), (LIVED_LABEL,)), ((), ())


def seen(*states: QueryState, at_s: float = 5.0) -> Injection:
    """An injection that the driver lived through, and the queries as they stood."""
    snapshot = Snapshot(step=1, moment="injection", attempt=2, at_s=at_s, queries=states)
    return Injection(number=1, outcome=LIVED, at=Seen(snapshot=snapshot, tables=()))


def planned(*offsets: int, checkpoint: str = "checkpoint") -> QueryState:
    return QueryState(checkpoint=checkpoint, offsets=offsets)


def unseen(**after: tuple[int, ...]) -> Injection:
    """The same of which only the evidence tells."""
    return Injection(number=1, outcome=replace(LIVED, evidence=replace(LIVED.evidence, checkpoint_after=after)))


@pytest.mark.parametrize(
    ("injected", "committed", "who"),
    [
        (seen(planned(0, 1)), (0,), THIS_ONE),
        (seen(planned(0, 1)), (0, 1), THIS_ONE),
        (seen(planned(0, 1)), (0, 1, 2), NO_ONE),
        (seen(planned(1, 0)), (0, 1), THIS_ONE),
        (seen(planned()), (0,), NO_ONE),
        (seen(planned(0, checkpoint="another")), (0, 1, 2), THIS_ONE),
        (seen(), (0, 1, 2), THIS_ONE),
        (unseen(offsets=(0, 1), commits=(0,)), (0,), THIS_ONE),
        (unseen(offsets=(0, 1), commits=(0,)), (0, 1, 2), NO_ONE),
        (unseen(commits=()), (0,), NO_ONE),
        (unseen(), (0, 1, 2), ANY_ONE),
    ],
)
def test_a_driver_that_lived_and_got_more_done_than_it_had_in_flight_was_not_stalled_by_the_injection(
    tmp_path: Path, injected: Injection, committed: tuple[int, ...], who: object
) -> None:
    batches = tuple(Batch(batch=number, ranges={}, committed=number in committed, attempts=(2,)) for number in range(4))
    found = run(tmp_path, GAVE_UP)
    query = Query(checkpoint="checkpoint", batches=batches, first={2: 0})
    kept = replace(found, progressed=replace(found.progressed, queries=(query,)))
    assert blamed(stalled(kept, (injected,), CALMS)) == who


@pytest.mark.parametrize(
    ("injected", "moves", "who"),
    [
        (seen(), (1.0, 6.0), THIS_ONE),
        (seen(), (1.0, 5.0, 6.0), THIS_ONE),
        (seen(), (1.0, 6.0, 7.0), NO_ONE),
        (seen(), (1.0, 6.0, 7.0, 8.0), NO_ONE),
        (seen(at_s=6.0), (1.0, 5.5, 6.0, 7.0), THIS_ONE),
        (unseen(offsets=()), (1.0, 5.0, 6.0), THIS_ONE),
        (unseen(offsets=()), (1.0, 6.0, 7.0), NO_ONE),
        (replace(unseen(offsets=()), outcome=replace(unseen(offsets=()).outcome, at_s=None)), (0.5, 0.6), NO_ONE),
    ],
)
def test_offsets_of_its_own_that_moved_on_twice_are_more_than_was_in_flight(
    tmp_path: Path, injected: Injection, moves: tuple[float, ...], who: object
) -> None:
    of_another = [Position(attempt=1, at_s=at_s, next={0: 1}) for at_s in (8.0, 9.0)]
    own = [Position(attempt=2, at_s=at_s, next={0: number}) for number, at_s in enumerate(moves, 2)]
    found = run(tmp_path, GAVE_UP)
    progressed = replace(found.progressed, queries=(), positions=(*of_another, *own))
    assert blamed(stalled(replace(found, progressed=progressed), (injected,), CALMS)) == who


def for_good(step: StepOutcome, *, struck: bool = True) -> StepOutcome:
    """The same, and what it took away does not come back."""
    return replace(step, evidence=replace(step.evidence, healed=False, struck=struck))


def test_who_ended_well_where_nobody_starts_it_again_is_nobodys_victim(tmp_path: Path) -> None:
    """Of YARN: an application that has succeeded is over, whatever has made its program end."""
    step = replace(SECOND, name="stop driver", evidence=replace(SECOND.evidence, driver_status=0))
    ended = said(kind="ended well", idle_s=0.5)
    for number, injected in enumerate([(INJECTIONS[0], replace(INJECTIONS[1], outcome=step)), INJECTIONS, ()]):
        out = stalled(run(tmp_path / str(number), ended), injected, CALMS)
        (why,) = out.unknown
        assert (out.findings, out.baseline_runs_needed) == ((), 0)
        assert why.startswith(f"{WORDS}; a program that ends well is not started again there")
    assert stalled(run(tmp_path / "no program", ended), INJECTIONS, [DEAD, ALSO]) == Stall(error=[FAILED])


def test_a_program_of_dstreams_that_was_begun_anew_does_not_stall_over_what_it_may_have_passed(tmp_path: Path) -> None:
    found = run(tmp_path, said())
    (query,) = found.progressed.queries
    old = replace(query, by_time=True, first={1: 0, 2: 0})
    new = replace(query, by_time=True, first={3: 0}, batches=(), made_again=True)
    made_again = replace(found, progressed=replace(found.progressed, queries=(old, new)))
    (why,) = stalled(made_again, INJECTIONS, CALMS).unknown
    assert (
        why == f"{WORDS}; the DStreams program made its checkpoint again, "
        "and it is not known which records it has passed over"
    )
    assert stalled(made_again, INJECTIONS, [DEAD, ALSO]) == Stall(error=[FAILED])
    gave_up = replace(made_again, outcome=replace(made_again.outcome, stalled=Stalled(**GAVE_UP)))
    assert stalled(gave_up, INJECTIONS, CALMS).findings, "it died"


def test_what_was_taken_away_for_good_excuses_only_who_did_nothing_since(tmp_path: Path) -> None:
    first, second = INJECTIONS
    lasting = [replace(second, outcome=for_good(SECOND))]
    (why,) = stalled(run(tmp_path, GAVE_UP), [first, *lasting], CALMS).unknown
    assert "did not come back" in why and LABEL in why
    survived = [replace(first, outcome=for_good(FIRST)), second]
    assert stalled(run(tmp_path / "b", GAVE_UP), survived, CALMS) == Stall(findings=[BLAMED]), "it got done more"
    unstruck = [first, replace(second, outcome=for_good(SECOND, struck=False))]
    assert stalled(run(tmp_path / "c", GAVE_UP), unstruck, CALMS) == Stall(findings=[BLAMED]), "nobody was connected"
    assert stalled(run(tmp_path / "d", GAVE_UP), lasting, [DEAD, ALSO]) == Stall(error=[FAILED])
