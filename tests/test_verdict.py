"""The verdict: what a guarantee allows, what makes a run void, and which word wins."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.verdict import SEVERITY, Facts, verdict, violates, worst
from harness.scenario import (
    CrashPoint,
    Evidence,
    Expect,
    Finding,
    Guarantee,
    Harm,
    Kind,
    Stake,
    StepOutcome,
    Verdict,
    Word,
)

EXACTLY, LEAST, MOST = Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE
HIT = StepOutcome(
    name="kill driver",
    point="in words",
    crash_point=CrashPoint.SINK_COMMITTED,
    batch=2,
    hit=True,
    evidence=Evidence(
        signalled={"driver 1": "SIGKILL"},
        driver_status=-9,
        checkpoint_after={"offsets": (0, 1, 2), "commits": (0, 1)},
    ),
)
COUNTS = {"records": 5, "acknowledged": 5, "expected_rows": 5, "sink_rows": 5}
FOUR = {"lost row": True, "doubled row": True, "flipped bit": True, "swapped payloads": True}
STAKE = Stake(
    step=1, position=0, sink="t", harm=Harm.LOSS, point="batch planned, sink not written", shown=True, note="batch 2"
)
GOOD = Facts(
    guarantee=EXACTLY,
    expect=Expect(),
    scheduled=("kill driver",),
    steps=(HIT,),
    drained=True,
    self_tests=FOUR,
    counts=COUNTS,
    stakes=(STAKE,),
)


def found(kind: Kind, *, sink: str = "t", position: int = 0, **changes: Any) -> Finding:
    """A finding that the only hit explains, if nothing else is said."""
    return Finding(kind=kind, sink=sink, key={"id": "1"}, position=position, **{"faults": ("kill driver",), **changes})


def word(**changes: object) -> Word:
    return verdict(replace(GOOD, **changes)).word  # type: ignore[arg-type]


def reasons(**changes: object) -> tuple[str, ...]:
    out = verdict(replace(GOOD, **changes))  # type: ignore[arg-type]
    assert (out.word is Word.HELD) == (not out.reasons and not out.findings)
    return out.reasons


def test_held_only_if_everything_is_in_order() -> None:
    assert verdict(GOOD) == Verdict(
        word=Word.HELD,
        as_expected=True,
        expect="held",
        steps=(HIT,),
        self_tests=FOUR,
        counts=COUNTS,
        stakes=(STAKE,),
        points_hit=(("t", "batch planned, sink not written"),),
    )


AGAIN, GONE = (Harm.REPETITION,), (Harm.LOSS,)
ALLOWED: list[tuple[Finding, tuple[bool | None, bool | None, bool | None]]] = [
    (found(Kind.LOST), (True, True, True)),
    (found(Kind.LOST, staked=True), (True, True, False)),
    (found(Kind.LOST, staked=True, faults=(), fits=("kill driver",)), (True, True, None)),
    (found(Kind.LOST, staked=True, faults=(), calm=True), (True, True, False)),
    (found(Kind.LOST, faults=(), calm=True), (True, True, True)),
    (found(Kind.LOST, staked=None), (True, True, None)),
    (found(Kind.LOST, staked=None, calm=True), (True, True, None)),
    (found(Kind.LOST, staked=True, faults=(), without_faults=True), (True, True, True)),
    (found(Kind.LOST, staked=True, torn=True), (True, True, True)),
    (found(Kind.LOST, staked=True, note="index lacks this key"), (True, True, False)),
    (found(Kind.LOST, staked=True, note="index holds this key"), (True, True, False)),
    (found(Kind.DUPLICATED), (True, False, True)),
    (found(Kind.DUPLICATED, altered=True), (True, True, True)),
    (found(Kind.DUPLICATED, note="1 of 2 with a different payload"), (True, False, True)),
    (found(Kind.CORRUPTED), (True, True, True)),
    (found(Kind.UNEXPECTED), (True, True, True)),
    (found(Kind.MISORDERED), (True, True, True)),
    (found(Kind.STALLED), (True, True, True)),
    (found(Kind.RECOVERED), (False, False, False)),
    (found(Kind.WRONG_AGGREGATE), (True, None, None)),
    (found(Kind.WRONG_AGGREGATE, note="too high by exactly batch 3"), (True, None, None)),
    (found(Kind.WRONG_AGGREGATE, harms=AGAIN), (True, None, True)),
    (found(Kind.WRONG_AGGREGATE, harms=GONE), (True, True, True)),
    (found(Kind.WRONG_AGGREGATE, harms=GONE, staked=True), (True, True, None)),
    (found(Kind.WRONG_AGGREGATE, harms=GONE, staked=None), (True, True, None)),
    (found(Kind.WRONG_AGGREGATE, harms=GONE, staked=True, calm=True), (True, True, None)),
    (found(Kind.WRONG_AGGREGATE, harms=AGAIN + GONE, staked=True), (True, True, True)),
]
"""What each guarantee says of a finding, never by the words of its note."""


@pytest.mark.parametrize(("finding", "answers"), ALLOWED)
@pytest.mark.parametrize("place", range(3))
def test_what_a_guarantee_allows(finding: Finding, answers: tuple[bool | None, ...], place: int) -> None:
    guarantee, answer = (EXACTLY, LEAST, MOST)[place], answers[place]
    assert violates(finding, guarantee) is answer
    words = {True: Word.VIOLATED, False: Word.HELD, None: Word.UNKNOWN}
    out = verdict(replace(GOOD, guarantee=guarantee, findings=(finding,)))
    assert out.word is words[answer]
    assert out.findings == (finding,)
    if answer is None:
        many = "1 finding, and nothing shows which explanation is the right one"
        assert out.reasons == (f"{many}: {guarantee} may allow it",)


def test_every_kind_has_an_answer_under_every_guarantee() -> None:
    assert {finding.kind for finding, _ in ALLOWED} == set(Kind)
    assert len(Guarantee) == 3


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scheduled": (), "steps": ()}, "no fault in the schedule: nothing was tested"),
        ({"scheduled": ("a", "b")}, "only 1 of 2 steps of the schedule have an outcome"),
        ({"steps": (replace(HIT, hit=False, evidence=Evidence()),)}, "step `kill driver` did not hit"),
        (
            {"steps": (replace(HIT, hit=False, evidence=Evidence(note="batch 2 was empty")),)},
            "step `kill driver` did not hit: batch 2 was empty",
        ),
        ({"steps": (replace(HIT, evidence=Evidence()),)}, "step `kill driver` says that it hit and has no evidence"),
        ({"counts": {**COUNTS, "records": 0}}, "the source holds no record"),
        ({"counts": {**COUNTS, "acknowledged": 0}}, "no record was acknowledged"),
        ({"counts": {**COUNTS, "expected_rows": 0}}, "nothing to compare: 0 rows expected, 5 found"),
        ({"counts": {**COUNTS, "sink_rows": 0}}, "nothing to compare: 5 rows expected, 0 found"),
        ({"counts": {"records": 5, "acknowledged": 5}}, "nothing to compare: 0 rows expected, 0 found"),
        (
            {"unmatched": {0: "t"}},
            "t holds not one of the keys expected of it: is it the right table, and the right effect?",
        ),
        ({"self_tests": {**FOUR, "lost row": False}}, "the comparison missed planted faults: lost row"),
        (
            {"self_tests": {**FOUR, "lost row": False, "flipped bit": False}},
            "the comparison missed planted faults: lost row, flipped bit",
        ),
        ({"self_tests": {}}, "no error was planted to test the checker"),
        ({"void": ("the console cannot be read",)}, "the console cannot be read"),
    ],
)  # fmt: skip
def test_never_green_by_silence(changes: dict[str, object], reason: str) -> None:
    assert reasons(**changes) == (reason,)
    assert word(**changes) is Word.VOID
    assert not verdict(replace(GOOD, **changes)).as_expected  # type: ignore[arg-type]


def test_what_the_guarantee_allows_tests_nothing() -> None:
    shown, allowed = replace(STAKE, harm=Harm.REPETITION), replace(STAKE, allowed=True)
    assert reasons(stakes=(allowed,), idle=("the reason",)) == ("the reason",)
    assert word(stakes=(allowed,), idle=("the reason",)) is Word.VOID
    assert word(stakes=(allowed, shown)) is Word.HELD
    assert word(stakes=(allowed, replace(shown, shown=False))) is Word.VOID


@pytest.mark.parametrize("point", [CrashPoint.BATCH_PLANNED, CrashPoint.SINK_COMMITTED])
def test_evidence_that_contradicts_a_step_makes_it_void(point: CrashPoint) -> None:
    def after(**logs: tuple[int, ...]) -> tuple[StepOutcome, ...]:
        evidence = Evidence(signalled={"7": "SIGKILL"}, driver_status=-9, checkpoint_after=logs)
        return (replace(HIT, crash_point=point, evidence=evidence),)

    late = "step `kill driver` came too late: batch 2 is in the commit log"
    early = "step `kill driver` came too early: batch 2 is not in the offset log"
    assert reasons(steps=after(offsets=(1, 2), commits=(1,))) == ()
    assert reasons(steps=after(offsets=(1, 2), commits=(1, 2))) == (late,)
    assert reasons(steps=after(offsets=(0, 1), commits=(0, 1))) == (early,)
    assert reasons(steps=after(commits=(0, 1))) == ()
    assert reasons(steps=after(offsets=(2,))) == ()
    assert reasons(steps=(replace(after(offsets=(1,), commits=(2,))[0], batch=None),)) == ()
    assert reasons(steps=(replace(after(offsets=(2,), commits=(2,))[0], crash_point=CrashPoint.BATCH_COMMITTED),)) == ()
    assert reasons(steps=(replace(after(offsets=(2,), commits=(2,))[0], crash_point=None),)) == ()


def test_a_plan_that_is_there_contradicts_a_hit_before_it() -> None:
    def after(**logs: tuple[int, ...]) -> tuple[StepOutcome, ...]:
        evidence = Evidence(signalled={"7": "SIGKILL"}, driver_status=-9, checkpoint_after=logs)
        return (replace(HIT, crash_point=CrashPoint.BATCH_PLANNING, evidence=evidence),)

    late = "step `kill driver` came too late: batch 2 is in the offset log"
    assert reasons(steps=after(offsets=(0, 1), commits=(0, 1))) == ()
    assert reasons(steps=after(offsets=(0, 1), commits=(0, 1), planning=(2,))) == ()
    assert reasons(steps=after(offsets=(0, 1, 2), commits=(0, 1))) == (late,)


@pytest.mark.parametrize(
    ("victim", "status", "asked"), [("7", None, False), ("driver-db-restart.sh", None, False), ("driver 1", 0, True)]
)
def test_a_driver_that_lives_or_was_asked_to_end_is_judged_by_the_checkpoint_before(
    victim: str, status: int | None, asked: bool
) -> None:
    def both(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[StepOutcome, ...]:
        evidence = Evidence(
            signalled={victim: "what became of it"},
            driver_status=status,
            asked=asked,
            checkpoint_before={"offsets": (1, 2), "commits": before},
            checkpoint_after={"offsets": (1, 2, 3), "commits": after},
        )
        return (replace(HIT, evidence=evidence),)

    assert reasons(steps=both((1,), (1, 2))) == ()
    assert reasons(steps=both((1, 2), (1,))) == ("step `kill driver` came too late: batch 2 is in the commit log",)


def test_what_could_not_be_told_is_unknown() -> None:
    words = "not drained: records lie beyond what the pipeline has committed"
    assert (word(drained=False), reasons(drained=False)) == (Word.UNKNOWN, (words,))
    assert reasons(drained=False, why_open=True, unknown=("5 of 9",)) == ("5 of 9",)
    assert reasons(drained=False, unknown=("rows are late",)) == ("rows are late", words)
    assert word(unknown=("rows are late",)) is Word.UNKNOWN


def test_the_worst_word_wins_and_all_reasons_are_kept() -> None:
    everything = {
        "error": ("Kafka died",),
        "findings": (found(Kind.LOST),),
        "void": ("no effect",),
        "drained": False,
    }
    assert word(**everything) is Word.ERROR
    out = verdict(replace(GOOD, **everything))  # type: ignore[arg-type]
    assert out.reasons[:2] == ("Kafka died", "no effect")
    assert out.reasons[2].startswith("not drained")
    assert word(**{**everything, "error": ()}) is Word.VIOLATED
    assert word(**{**everything, "error": (), "findings": ()}) is Word.VOID
    assert word(**{**everything, "error": (), "findings": (), "void": ()}) is Word.UNKNOWN


@given(st.lists(st.sampled_from(Word)))
def test_worst_is_a_lattice(words: list[Word]) -> None:
    order = [Word.HELD, Word.UNKNOWN, Word.VOID, Word.VIOLATED, Word.ERROR]
    assert worst(words) is order[max((order.index(w) for w in words), default=0)]
    assert set(SEVERITY) == set(Word)


@pytest.mark.parametrize(("one", "other"), list(product(Word, Word)))
def test_worst_does_not_depend_on_the_order(one: Word, other: Word) -> None:
    assert worst([one, other]) is worst([other, one])


@pytest.mark.parametrize(
    ("expect", "findings", "as_expected"),
    [
        (Expect(), (), True),
        (Expect(), (found(Kind.RECOVERED),), True),
        (Expect(), (found(Kind.LOST),), False),
        (Expect(word=Word.VIOLATED, kinds=(Kind.LOST,)), (found(Kind.LOST), found(Kind.LOST)), True),
        (Expect(word=Word.VIOLATED, kinds=(Kind.LOST,)), (found(Kind.LOST), found(Kind.RECOVERED)), True),
        (Expect(word=Word.VIOLATED, kinds=(Kind.LOST,)), (found(Kind.DUPLICATED),), False),
        (Expect(word=Word.VIOLATED, kinds=(Kind.LOST,)), (found(Kind.LOST), found(Kind.DUPLICATED)), False),
        (Expect(word=Word.VIOLATED, kinds=(Kind.LOST, Kind.DUPLICATED)), (found(Kind.LOST),), False),
        (
            Expect(word=Word.VIOLATED, kinds=(Kind.LOST, Kind.DUPLICATED)),
            (found(Kind.DUPLICATED), found(Kind.LOST)),
            True,
        ),
        (Expect(word=Word.VIOLATED, kinds=(Kind.LOST,)), (), False),
    ],
)
def test_as_expected_asks_for_the_word_and_exactly_the_kinds(
    expect: Expect, findings: tuple[Finding, ...], as_expected: bool
) -> None:
    out = verdict(replace(GOOD, expect=expect, findings=findings))
    assert (out.as_expected, out.expect) == (as_expected, str(expect))


def test_only_kinds_that_violate_are_compared() -> None:
    expect = Expect(word=Word.VIOLATED, kinds=(Kind.LOST,))
    findings = (found(Kind.LOST), found(Kind.DUPLICATED))
    assert verdict(replace(GOOD, guarantee=LEAST, expect=expect, findings=findings)).as_expected


def test_a_violation_that_the_schedule_did_not_cause_is_not_the_expected_one() -> None:
    expect = Expect(word=Word.VIOLATED, kinds=(Kind.LOST,))
    facts = replace(GOOD, expect=expect, findings=(found(Kind.LOST),))
    assert verdict(facts).as_expected
    assert verdict(replace(facts, drained=False)).as_expected
    missed = verdict(replace(facts, steps=(replace(HIT, hit=False),)))
    assert (missed.word, missed.as_expected) == (Word.VIOLATED, False)


NO_HIT = "nothing shows that a hit did it: the violation is not known to be the one that the schedule was to cause"
NO_CONTROL = "expected without faults too; no control run shows it"


@pytest.mark.parametrize(
    ("changes", "without_faults", "writing", "reason"),
    [
        ({}, False, (), ""),
        ({"faults": ()}, False, ("kill driver",), NO_HIT),
        ({"faults": (), "fits": ("kill driver",)}, False, (), NO_HIT),
        ({"faults": (), "fits": ("kill driver",)}, False, ("pause driver",), NO_HIT),
        ({"faults": (), "fits": ("kill driver", "pause driver")}, False, ("pause driver",), NO_HIT),
        ({"faults": (), "near": ("kill driver", "pause driver")}, False, ("pause driver",), ""),
        ({"faults": (), "fits": ("kill driver",), "without_faults": True}, False, ("kill driver",), NO_HIT),
        ({"faults": (), "without_faults": True}, True, (), ""),
        ({"faults": (), "fits": ("kill driver",)}, True, ("kill driver",), NO_CONTROL),
        ({}, True, (), NO_CONTROL),
    ],
)
def test_an_expected_violation_needs_a_finding_that_a_hit_explains_or_that_shows_without_faults(
    changes: dict[str, Any], without_faults: bool, writing: tuple[str, ...], reason: str
) -> None:
    expect = Expect(word=Word.VIOLATED, kinds=(Kind.LOST,), without_faults=without_faults)
    facts = replace(GOOD, writing=frozenset(writing))
    out = verdict(replace(facts, expect=expect, findings=(found(Kind.LOST, **changes),)))
    assert (out.word, out.as_expected) == (Word.VIOLATED, not reason)
    assert out.reasons == ((reason,) if reason else ())
    other = found(Kind.LOST, faults=() if without_faults else ("kill driver",), without_faults=without_faults)
    assert verdict(replace(GOOD, expect=expect, findings=(found(Kind.LOST, **changes), other))).as_expected


def test_what_a_hit_broke_shows_though_the_log_is_late_and_it_never_holds() -> None:
    late = replace(GOOD, unplanned="the log is late", stakes=())
    said = verdict(late)
    assert (said.word, said.as_expected, said.reasons) == (Word.VOID, False, ("the log is late",))
    assert not verdict(replace(late, expect=Expect(word=Word.VOID))).as_expected
    expect = Expect(word=Word.VIOLATED, kinds=(Kind.DUPLICATED,))
    twice = replace(late, findings=(found(Kind.DUPLICATED),), expect=expect)
    assert (verdict(twice).word, verdict(twice).as_expected) == (Word.VIOLATED, True)
    assert not verdict(replace(twice, void=("no test",))).as_expected
    assert not verdict(replace(twice, steps=())).as_expected
    assert not verdict(replace(twice, findings=(found(Kind.DUPLICATED, faults=()),))).as_expected


def test_why_nothing_is_blamed_is_said_only_where_a_violation_was_expected() -> None:
    bare = (found(Kind.LOST, faults=()),)
    assert verdict(replace(GOOD, findings=bare)).reasons == ()


def test_findings_that_control_runs_left_open_are_shown_and_do_not_violate() -> None:
    doubtful = (found(Kind.DUPLICATED, faults=()),)
    out = verdict(replace(GOOD, doubtful=doubtful, unknown=("the controls differ",)))
    assert (out.word, out.findings) == (Word.UNKNOWN, doubtful)
    both = verdict(replace(GOOD, findings=(found(Kind.LOST),), doubtful=doubtful))
    assert both.findings == (found(Kind.LOST), *doubtful)


def test_a_run_without_a_consequential_hit_is_void_with_the_reasons() -> None:
    unseen = replace(STAKE, shown=False)
    assert reasons(stakes=(unseen,)) == ("nothing shows that a hit had anything at stake",)
    assert reasons(stakes=(), idle=("batch 0 held no record",)) == ("batch 0 held no record",)
    assert reasons(stakes=(unseen, STAKE), idle=("x",)) == ()
    assert reasons(stakes=(), idle=("x",), scheduled=(), steps=()) == ("no fault in the schedule: nothing was tested",)


def test_what_was_not_tried_and_what_limits_the_answer_is_kept() -> None:
    out = verdict(
        replace(
            GOOD,
            stakes=(replace(STAKE, sink="t", point="x"),) * 2,
            untried=(("t", "sink written in part"),),
            notes=("the sink folds",),
        )
    )
    assert (out.word, out.points_hit, out.untried) == (Word.HELD, (("t", "x"),), (("t", "sink written in part"),))
    assert out.notes == ("the sink folds",)


def test_unknown_can_be_expected_of_what_a_fault_took_away_for_good() -> None:
    stopped = replace(
        GOOD, expect=Expect(word=Word.UNKNOWN), drained=False, unknown=("no key",), why_open=True, gone=True
    )
    assert (verdict(stopped).as_expected, verdict(stopped).reasons) == (True, ("no key",))


def test_an_unknown_for_another_cause_is_not_the_expected_one() -> None:
    expecting = replace(GOOD, expect=Expect(word=Word.UNKNOWN), guarantee=Guarantee.AT_MOST_ONCE)
    vague = (found(Kind.WRONG_AGGREGATE, vague=True),)
    for facts in (replace(expecting, unknown=("the time was up",)), replace(expecting, gone=True, findings=vague)):
        out = verdict(facts)
        assert (out.word, out.as_expected, len(out.reasons)) == (Word.UNKNOWN, False, 2)


NOTHING = {"stakes": (), "idle": ("every planned batch was committed",)}
UNFELT = replace(HIT, hit=False, evidence=replace(HIT.evidence, note="nobody was connected", unfelt=True))
BLIND = {"unread": ("a console cannot be read",), "compared": False, "self_tests": {}, "stakes": ()}
ONLY_SENT = {"records": 5, "acknowledged": 5}
ELSE = "void was expected because nothing was to be at stake, and something else is wrong with this test"


@pytest.mark.parametrize(
    "changes",
    [
        NOTHING,
        {"stakes": (replace(STAKE, allowed=True),)},
        {"stakes": (replace(STAKE, shown=False),)},
        {"steps": (UNFELT,), "stakes": ()},
        {"scheduled": (), "steps": (), "stakes": ()},
        {**BLIND, "counts": ONLY_SENT},
        {**BLIND, "counts": ONLY_SENT, "drained": False},
        {**BLIND, "counts": ONLY_SENT, "scheduled": (), "steps": ()},
        {**NOTHING, "unread": ("a console cannot be read",)},
    ],
)
def test_an_expected_void_is_a_sound_test_in_which_nothing_was_at_stake(changes: dict[str, Any]) -> None:
    out = verdict(replace(GOOD, expect=Expect(word=Word.VOID), **changes))
    assert (out.word, out.as_expected) == (Word.VOID, True), out.reasons
    assert ELSE not in out.reasons


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": ()},
        {"steps": (replace(HIT, hit=False),)},
        {"steps": (UNFELT, replace(HIT, hit=False)), "scheduled": ("a", "b")},
        {"steps": (replace(HIT, evidence=Evidence()),)},
        {"steps": (replace(HIT, evidence=replace(HIT.evidence, checkpoint_after={"commits": (2,)})),)},
        {"void": ("t could not be read: the server is gone",)},
        {"untold": True},
        {"self_tests": {**FOUR, "lost row": False}},
        {"self_tests": {}},
        {"counts": {**COUNTS, "records": 0}},
        {"counts": {**COUNTS, "acknowledged": 0}},
        {"counts": {**COUNTS, "sink_rows": 0}},
        {"counts": {**COUNTS, "expected_rows": 0}},
        {"unmatched": {0: "t"}},
        {"drained": False},
        {"unknown": ("the time was up",)},
        {**BLIND, "counts": {"records": 5}},
        {**BLIND, "counts": ONLY_SENT, "steps": (replace(HIT, hit=False),)},
        {"unread": ("a console cannot be read",), "self_tests": {}},
        {"unread": ("a console cannot be read",), "counts": ONLY_SENT},
    ],
)
@pytest.mark.parametrize("idle", [True, False])
def test_a_void_for_another_cause_is_not_the_expected_one(changes: dict[str, Any], idle: bool) -> None:
    found = {**(NOTHING if idle else {"void": ("x",)}), **changes}
    out = verdict(replace(GOOD, expect=Expect(word=Word.VOID), **found))
    assert (out.word, out.as_expected) == (Word.VOID, False)
    assert out.reasons[-1] == ELSE
    assert ELSE not in verdict(replace(GOOD, **found)).reasons


def test_findings_of_a_sink_that_holds_nothing_expected_do_not_violate() -> None:
    lost = (found(Kind.LOST), found(Kind.UNEXPECTED))
    assert word(findings=lost, unmatched={0: "t"}) is Word.VOID
    assert word(findings=(*lost, found(Kind.LOST, sink="t", position=1)), unmatched={0: "t"}) is Word.VIOLATED
    assert word(findings=(*lost, found(Kind.STALLED, sink="", position=-1)), unmatched={0: "t"}) is Word.VIOLATED
