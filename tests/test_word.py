"""Rules 6 and 7: what a guarantee allows, what makes a run no test, and which word wins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge.baseline import Shown
from harness.judge.guarantee import violates
from harness.judge.word import SEVERITY, Reasons, Untested, missed, uncompared, unexpected, word
from harness.scenario import CrashPoint, Evidence, Expected, Finding, Guarantee, Harm, Kind, StepOutcome, Word

EXACTLY, LEAST, MOST = Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE
INJECTED = StepOutcome(
    name="kill driver",
    point="in words",
    crash_point=CrashPoint.SINK_COMMITTED,
    batch=2,
    injected=True,
    evidence=Evidence(
        signalled={"driver 1": "SIGKILL"},
        driver_status=-9,
        checkpoint_after={"offsets": (0, 1, 2), "commits": (0, 1)},
    ),
)
COUNTS = {"records": 5, "acknowledged": 5, "expected_rows": 5, "sink_rows": 5}
PLANTED = {"lost row": True, "doubled row": True}
LATE = Untested("the log is late", partial=True)
NOTHING = Untested("nothing counts", meant=True)


def found(kind: Kind, **changes: Any) -> Finding:
    """A finding that the only step explains, if nothing else is said."""
    return Finding(kind=kind, sink="t", key={"id": "1"}, **{"faults": ("kill driver",), **changes})


LOST, TWICE, WRONG = found(Kind.LOST), found(Kind.DUPLICATED), found(Kind.WRONG_AGGREGATE)


@pytest.mark.parametrize(
    ("finding", "harms", "answers"),
    [
        (LOST, {Harm.LOSS}, (True, True, False)),
        (replace(LOST, vague=True), {Harm.LOSS}, (True, None, None)),
        (replace(LOST, torn=True), {Harm.LOSS}, (True, True, True)),
        (TWICE, {Harm.REPETITION}, (True, False, True)),
        (replace(TWICE, altered=True), {Harm.REPETITION}, (True, True, True)),
        (replace(TWICE, vague=True), {Harm.REPETITION}, (True, None, None)),
        (WRONG, {Harm.REPETITION}, (True, False, True)),
        (WRONG, {Harm.LOSS}, (True, True, False)),
        (WRONG, {Harm.LOSS, Harm.REPETITION}, (True, True, True)),
        (WRONG, set(), (True, None, None)),
        (replace(WRONG, altered=True), set(), (True, True, True)),
        (found(Kind.CORRUPTED), set(), (True, True, True)),
        (found(Kind.CORRUPTED), {Harm.LOSS}, (True, True, False)),
        (found(Kind.UNEXPECTED), set(), (True, True, True)),
        (found(Kind.MISORDERED), set(), (True, True, True)),
        (found(Kind.STALLED), set(), (True, True, True)),
        (found(Kind.RECOVERED), set(), (False, False, False)),
    ],
)
def test_what_a_guarantee_allows(finding: Finding, harms: set[Harm], answers: tuple[bool | None, ...]) -> None:
    for guarantee, answer in zip((EXACTLY, LEAST, MOST), answers, strict=True):
        assert violates(finding, guarantee, harms=harms, shown=Shown.CLEAN, struck=True) is answer, guarantee


@pytest.mark.parametrize(
    ("shown", "injected", "answer"),
    [
        (Shown.CLEAN, True, False),
        (Shown.CLEAN, None, None),
        (Shown.CLEAN, False, True),
        (Shown.ALIKE, True, True),
        (Shown.OTHERS, True, True),
        (Shown.DIFFERS, True, None),
        (Shown.NONE, True, None),
    ],
)
def test_at_most_once_allows_a_loss_that_a_fault_did(shown: Shown, injected: bool | None, answer: bool | None) -> None:
    assert violates(LOST, MOST, harms={Harm.LOSS}, shown=shown, struck=injected) is answer


def test_whole_batches_that_come_to_the_same_total_leave_it_open() -> None:
    for guarantee, harm, sign in ((LEAST, Harm.REPETITION, -1), (MOST, Harm.LOSS, 1)):
        options = [((sign, 2),), ((-sign, 1),)]
        assert violates(WRONG, guarantee, harms={harm}, options=options, shown=Shown.CLEAN, struck=True) is None
        assert violates(WRONG, guarantee, harms={harm}, options=options[1:], shown=Shown.CLEAN, struck=True) is False


@given(st.sets(st.sampled_from(["violated", "error", "untested", "inconclusive"])))
def test_the_worst_word_wins(why: set[str]) -> None:
    reasons = Reasons(
        error=["e"] if "error" in why else (),
        untested=[NOTHING] if "untested" in why else (),
        inconclusive=["u"] if "inconclusive" in why else (),
    )
    words = {
        "violated": Word.VIOLATED,
        "error": Word.ERROR,
        "untested": Word.UNTESTED,
        "inconclusive": Word.INCONCLUSIVE,
    }
    right = min((words[each] for each in why), key=SEVERITY.index, default=Word.HELD)
    assert word([LOST] if "violated" in why else [], reasons) is right


@pytest.mark.parametrize(
    ("reasons", "findings", "expected", "words"),
    [
        (Reasons(), (), Expected(), ""),
        (Reasons(untested=[NOTHING]), (), Expected(), "held was expected"),
        (Reasons(), (LOST,), Expected(word=Word.VIOLATED, kinds=(Kind.LOST,)), ""),
        (
            Reasons(),
            (LOST, TWICE),
            Expected(word=Word.VIOLATED, kinds=(Kind.LOST,)),
            "other kinds were expected: lost",
        ),
        (Reasons(untested=[LATE]), (LOST,), Expected(word=Word.VIOLATED, kinds=(Kind.LOST,)), ""),
        (
            Reasons(untested=[NOTHING]),
            (LOST,),
            Expected(word=Word.VIOLATED, kinds=(Kind.LOST,)),
            "the run was no test",
        ),
        (
            Reasons(),
            (replace(LOST, faults=()),),
            Expected(word=Word.VIOLATED, kinds=(Kind.LOST,)),
            "no step of the schedule is known to have caused the violation",
        ),
        (
            Reasons(),
            (LOST,),
            Expected(word=Word.VIOLATED, kinds=(Kind.LOST,), without_faults=True),
            "the violation was expected without faults too; no baseline run shows it",
        ),
        (
            Reasons(),
            (replace(LOST, faults=(), without_faults=True),),
            Expected(word=Word.VIOLATED, kinds=(Kind.LOST,), without_faults=True),
            "",
        ),
        (Reasons(inconclusive=["gone"], gone=True), (), Expected(word=Word.INCONCLUSIVE), ""),
        (
            Reasons(inconclusive=["open"]),
            (),
            Expected(word=Word.INCONCLUSIVE),
            "inconclusive was expected for what a fault took away for good, and something else is open",
        ),
        (Reasons(untested=[NOTHING]), (), Expected(word=Word.UNTESTED), ""),
    ],
)
def test_a_verdict_is_the_expected_one_with_its_kinds_and_cause(
    reasons: Reasons, findings: tuple[Finding, ...], expected: Expected, words: str
) -> None:
    assert unexpected(word(findings, reasons), findings, reasons, expected, sound=True) == words


def test_an_expected_untested_is_a_sound_run_in_which_nothing_counts() -> None:
    why = Reasons(untested=[NOTHING])
    assert "something else is wrong" in unexpected(Word.UNTESTED, (), why, Expected(word=Word.UNTESTED), sound=False)


@pytest.mark.parametrize(
    ("step", "words", "meant"),
    [
        (replace(INJECTED, injected=False), "step `kill driver` was not injected", False),
        (
            replace(INJECTED, injected=False, evidence=Evidence(note="never came", struck=False)),
            "step `kill driver` was not injected: never came",
            True,
        ),
        (
            replace(INJECTED, evidence=Evidence()),
            "step `kill driver` says that it was injected and has no evidence",
            False,
        ),
    ],
)
def test_a_step_that_was_not_injected_proves_nothing(step: StepOutcome, words: str, meant: bool) -> None:
    assert list(missed([step], 1)) == [Untested(words, meant=meant)]


def test_a_schedule_has_steps_and_each_an_outcome() -> None:
    assert list(missed([INJECTED], 1)) == []
    assert [each.words for each in missed([], 0)] == ["no fault in the schedule: nothing was tested"]
    assert [each.words for each in missed([INJECTED], 2)] == ["only 1 of 2 steps of the schedule have an outcome"]


def reasons(step: StepOutcome) -> list[str]:
    return [each.words for each in missed([step], 1)]


def at(point: CrashPoint | None, **logs: tuple[int, ...]) -> StepOutcome:
    """A step that found these batches in the checkpoint's logs."""
    evidence = Evidence(signalled={"7": "SIGKILL"}, driver_status=-9, checkpoint_after=logs)
    return replace(INJECTED, crash_point=point, evidence=evidence)


@pytest.mark.parametrize("point", [CrashPoint.BATCH_PLANNED, CrashPoint.SINK_COMMITTED])
def test_evidence_that_contradicts_a_step_is_told(point: CrashPoint) -> None:
    late = "step `kill driver` came too late: batch 2 is in the commit log"
    early = "step `kill driver` came too early: batch 2 is not in the offset log"
    assert reasons(at(point, offsets=(1, 2), commits=(1,))) == []
    assert reasons(at(point, offsets=(1, 2), commits=(1, 2))) == [late]
    assert reasons(at(point, offsets=(0, 1), commits=(0, 1))) == [early]
    assert reasons(at(point, commits=(0, 1))) == []
    assert reasons(at(point, offsets=(2,))) == []
    assert reasons(replace(at(point, offsets=(1,), commits=(2,)), batch=None)) == []
    assert reasons(at(CrashPoint.BATCH_COMMITTED, offsets=(2,), commits=(2,))) == []
    assert reasons(at(None, offsets=(2,), commits=(2,))) == []


def test_a_plan_that_is_there_contradicts_a_step_before_it() -> None:
    planning = CrashPoint.BATCH_PLANNING
    late = "step `kill driver` came too late: batch 2 is in the offset log"
    assert reasons(at(planning, offsets=(0, 1), commits=(0, 1))) == []
    assert reasons(at(planning, offsets=(0, 1), commits=(0, 1), planning=(2,))) == []
    assert reasons(at(planning, offsets=(0, 1, 2), commits=(0, 1))) == [late]


@pytest.mark.parametrize("committing", [(2,), (), (1,)])
def test_a_step_in_the_sink_s_commit_finds_that_unfinished(committing: tuple[int, ...]) -> None:
    step = at(CrashPoint.SINK_COMMITTING, offsets=(0, 1, 2), commits=(0, 1), committing=committing)
    late = "step `kill driver` came too late: the sink's commit of batch 2 was no longer being written"
    assert reasons(step) == ([] if committing == (2,) else [late])


@pytest.mark.parametrize(("status", "stop_requested"), [(None, False), (0, True)])
def test_where_the_driver_lived_or_was_asked_to_end_the_checkpoint_before_counts(
    status: int | None, stop_requested: bool
) -> None:
    evidence = Evidence(
        signalled={"7": "what became of it"},
        driver_status=status,
        stop_requested=stop_requested,
        checkpoint_before={"offsets": (1, 2), "commits": (1,)},
        checkpoint_after={"offsets": (1, 2, 3), "commits": (1, 2)},
    )
    assert reasons(replace(INJECTED, evidence=evidence)) == []
    swapped = replace(evidence, checkpoint_before=evidence.checkpoint_after, checkpoint_after={})
    assert reasons(replace(INJECTED, evidence=swapped)) == [
        "step `kill driver` came too late: batch 2 is in the commit log"
    ]


@pytest.mark.parametrize(
    ("counts", "planted", "words"),
    [
        ({}, PLANTED, []),
        ({"records": 0}, PLANTED, ["the source holds no record"]),
        ({"acknowledged": 0}, PLANTED, ["no record was acknowledged"]),
        ({"expected_rows": 0}, PLANTED, ["nothing to compare: 0 rows expected, 5 found"]),
        ({"sink_rows": 0}, PLANTED, ["nothing to compare: 5 rows expected, 0 found"]),
        ({}, {**PLANTED, "lost row": False}, ["the comparison missed planted faults: lost row"]),
        ({}, {}, ["no error was planted to test the checker"]),
    ],
)
def test_a_comparison_that_says_nothing_is_told(
    counts: dict[str, int], planted: dict[str, bool], words: list[str]
) -> None:
    found = uncompared({**COUNTS, **counts}, planted, compared=True, lost=False)
    assert [each.words for each in found] == words
    if "sink_rows" in counts:
        assert not list(uncompared({**COUNTS, **counts}, planted, compared=True, lost=True)), "all of it was lost"
