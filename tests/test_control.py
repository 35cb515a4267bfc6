"""What control runs without faults say of findings that no snapshot explains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError, UsageError
from harness.judge import judge, judged, wants
from harness.judge.control import CONTROLS_MAX, Control, Decided, decide, read_controls, signature
from harness.judge.read_folder import read_run
from harness.run_folder.ledger import State
from harness.scenario import Finding, Guarantee, Kind, Word
from tests.folders import HIT, Folder, Injected, at_point, edited, payments

pytestmark = pytest.mark.usefixtures("asked_once")

ROW = {"id": "1", "amount": "5"}


def found(kind: Kind = Kind.LOST, key: str = "1", **changes: Any) -> Finding:
    return Finding(kind=kind, sink="t", key={"id": key}, **changes)


def controls(*shown: Sequence[Finding], **changes: Any) -> list[Control]:
    """Control runs with these findings each."""
    made = ({signature(finding): finding for finding in findings} for findings in shown)
    return [Control(number=number, findings=each, **changes) for number, each in enumerate(made, 1)]


CALM = controls([], [], [])


def test_a_finding_is_about_its_sink_its_kind_and_its_key() -> None:
    assert signature(found(position=2)) == (2, Kind.LOST, (("id", "1"),))
    assert signature(found(note="x", copies=9, fits=("f",))) == signature(found())


def test_findings_that_violate_nothing_or_that_a_hit_explains_need_no_control() -> None:
    one = found()
    assert decide([one], [], []) == Decided(stand=[one])
    known = replace(one, faults=("f",))
    assert decide([known], [known], []) == Decided(stand=[known])


def test_of_a_kind_that_is_explained_what_fits_a_hit_needs_none_and_what_fits_none_does() -> None:
    known, near, far = found(faults=("f",)), found(key="2", fits=("f",)), found(key="3")
    assert decide([known, near], [known, near], []) == Decided(stand=[known, near])
    out = decide([known, near, far], [known, near, far], [])
    assert (out.stand, out.doubtful, out.wants) == ([known], [near, far], 1)
    assert out.unknown == ["2 findings are explained by no hit, and no control run was made"]
    for other in (found(Kind.DUPLICATED, fits=("f",)), found(position=1, fits=("f",))):
        out = decide([known, other], [known, other], [])
        assert (out.stand, out.doubtful, out.wants) == ([known], [other], 1)


@pytest.mark.parametrize(
    ("made", "wants", "reason"),
    [
        ([], 1, "no control run was made"),
        ([Control(number=1, open=True)], 2, "none of 1 control runs got done"),
        ([Control(number=number, open=True) for number in (1, 2, 3)], 0, "none of 3 control runs got done"),
    ],
)
def test_nobody_is_acquitted_of_a_loss_that_no_control_is_without(made: list[Control], wants: int, reason: str) -> None:
    lost = found(faults=("f",), to_confirm=True)
    out = decide([lost], [], made, [lost])
    assert (out.unknown, out.wants) == ([f"1 losses may be there without faults too: {reason}"], wants)
    assert out.stand == [replace(lost, faults=(), fits=("f",))]
    assert decide([lost], [], controls([]), [lost]) == Decided(stand=[lost])


@pytest.mark.parametrize(
    ("made", "wants", "reason"),
    [
        ([], 1, "no control run was made"),
        (CALM[:1], 2, "only 1 of 3 control runs got done"),
        (CALM[:2], 3, "only 2 of 3 control runs got done"),
        ([*CALM[:2], Control(number=3, open=True)], 0, "only 2 of 3 control runs got done"),
        ([Control(number=1, open=True)], 2, "only 0 of 3 control runs got done"),
        (controls([found()], open=True), 2, "only 0 of 3 control runs got done"),
        ([*controls([found()]), Control(number=2, open=True)], 3, "only 1 of 3 control runs got done"),
    ],
)
def test_too_few_controls_leave_a_finding_doubtful(made: list[Control], wants: int, reason: str) -> None:
    one = found()
    out = decide([one], [one], made)
    assert (out.stand, out.doubtful, out.wants) == ([], [one], wants)
    assert out.unknown == [f"1 findings are explained by no hit, and {reason}"]
    assert (out.error, out.notes) == ([], [])


def test_a_pipeline_that_fails_without_faults_is_an_error() -> None:
    one = found()
    failed = [Control(number=1, error="it has no main"), Control(number=2, error="nor does this one")]
    words = "the pipeline does not work without faults either: it has no main"
    assert decide([one], [one], failed) == Decided(stand=[one], error=[words])


def test_a_control_that_failed_alone_says_nothing_and_another_one_is_asked_for() -> None:
    one, failed = found(), Control(number=2, error="it has no main")
    for made in ([replace(failed, number=1)], [*CALM[:1], failed]):
        out = decide([one], [one], made)
        assert (out.error, out.doubtful, out.wants) == ([], [one], len(made) + 1)
        assert out.notes == [f"control run {len(made)} did not work: it has no main"]


def test_controls_that_agree_with_the_effect_let_findings_stand() -> None:
    one, other = found(fits=("f",)), found(key="2")
    assert decide([one, other], [one], CALM) == Decided(stand=[replace(one, calm=True), other])


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.DUPLICATED])
def test_what_all_controls_show_too_violates_and_blames_nothing(kind: Kind) -> None:
    one, other = found(kind, fits=("f",)), found(kind, key="2", fits=("f",))
    out = decide([one, other], [one, other], controls([one], [one], [one]))
    assert out.stand == [replace(one, without_faults=True, fits=()), other], "each control has one of that kind"
    assert out.notes == ["also without faults: 1 findings show in every control run, and no fault is blamed"]
    assert (out.unknown, out.error, out.doubtful) == ([], [], [])


@pytest.mark.parametrize("kind", [Kind.CORRUPTED, Kind.UNEXPECTED, Kind.WRONG_AGGREGATE, Kind.MISORDERED])
def test_a_row_that_is_wrong_in_every_control_is_an_error_of_effect_or_pipeline(kind: Kind) -> None:
    one = found(kind, fits=("f",), found=(ROW,))
    out = decide([one], [one], controls([one], [one], [one]))
    assert out.stand == [replace(one, without_faults=True, fits=())]
    words = f"effect and pipeline do not fit: 1 rows are {kind} in every control run"
    assert out.error == [f"{words} without faults too. Mend the effect, or the pipeline"]
    assert out.notes == []


def test_controls_that_differ_leave_what_some_show_and_what_none_shows_open() -> None:
    one, two, three, known = found(), found(key="2"), found(key="3"), found(key="4", faults=("f",))
    findings = [one, two, three, known]
    out = decide(findings, findings, controls([one, two], [one]))
    assert out.stand == [replace(one, without_faults=True), known]
    assert out.doubtful == [two, three]
    words = "not deterministic without faults: the control runs differ, and 2 findings"
    assert out.unknown == [f"{words} may be no fault's doing (lost id=2, lost id=3)"]
    assert out.wants == 0
    assert out.notes == ["also without faults: 1 findings show in every control run, and no fault is blamed"]


def test_a_control_that_failed_is_noted_beside_what_the_others_show() -> None:
    one = found()
    out = decide([one], [one], [Control(number=1, error="it has no main"), *controls([], [one])])
    assert (out.doubtful, out.notes) == ([one], ["control run 1 did not work: it has no main"])


def test_two_controls_that_differ_are_enough_and_the_same_row_with_other_cells_differs() -> None:
    one = found(Kind.WRONG_AGGREGATE, found=(ROW,))
    other = replace(one, found=({**ROW, "amount": "6"},))
    out = decide([one], [one], controls([one], [other]))
    assert (out.stand, out.doubtful, out.wants, out.error) == ([], [one], 0, []), "a flaky loser in that total"
    assert decide([one], [one], controls([one], [other], [one])).doubtful == [one]
    same = decide([one], [one], controls([other], [other], [other]))
    assert same.stand == [replace(one, without_faults=True)]
    assert len(same.error) == 1


def test_what_every_control_shows_is_blamed_on_nobody_though_a_snapshot_explains_it() -> None:
    known, one = found(faults=("f",)), found(key="2")
    out = decide([known, one], [known, one], controls([known], [known], [known]))
    assert out.stand == [replace(known, faults=(), without_faults=True), one]


def test_a_wrong_row_that_one_control_shows_is_left_open() -> None:
    one = found(Kind.WRONG_AGGREGATE, found=(ROW,))
    assert decide([one], [one], controls([one], [])).doubtful == [one]


def test_five_findings_are_named_and_all_counted() -> None:
    many = [found(key=str(n)) for n in range(7)]
    out = decide(many, many, controls([found(key="x")], []))
    assert out.unknown[0].endswith("(lost id=0, lost id=1, lost id=2, lost id=3, lost id=4)")
    assert "and 7 findings" in out.unknown[0]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A run that lost row 25, which no hit had at stake."""
    made = Folder(tmp_path / "run")
    rows = payments(made.records)
    made.tables = [rows[:25] + rows[26:]]
    return made


def test_a_run_asks_for_controls_one_by_one(folder: Folder) -> None:
    whole = payments(folder.records)
    folder.write()
    for number in range(1, CONTROLS_MAX + 1):
        assert (judge(folder.path).word, wants(folder.path)) == (Word.UNKNOWN, number)
        folder._control(number, [whole])
    out = judged(folder.path)
    assert (out.verdict.word, out.wants, out.verdict.kinds()) == (Word.VIOLATED, 0, {"lost": 1})
    assert (out.verdict.findings[0].faults, out.verdict.findings[0].fits) == ((), ())


def test_three_controls_are_read_with_their_longest_gaps(folder: Folder) -> None:
    folder.controls = [folder.tables, "boom", folder.tables, folder.tables]
    edited(folder.write(), "controls/1/progress", gap_s=7.5)
    edited(folder.path, "controls/3/progress", gap_s=7.5, drained=False)
    one = found()
    assert read_controls(read_run(folder.path), lambda run: [one, found(Kind.RECOVERED)]) == [
        Control(number=1, findings={signature(one): one}, gap_s=7.5),
        Control(number=2, error="boom"),
        Control(number=3, open=True, gap_s=7.5),
    ]
    run = folder.path / "controls" / "1" / "run.json"
    run.write_text(json.dumps({"outcome": {"error": "late"}}))
    assert read_controls(read_run(folder.path), lambda run: [])[0] == Control(number=1, error="late")


def test_controls_with_the_same_loss_violate_without_blame(folder: Folder) -> None:
    folder.controls = [folder.tables] * 3
    verdict = judge(folder.write())
    assert (verdict.word, verdict.findings[0].without_faults) == (Word.VIOLATED, True)
    assert verdict.notes == ("also without faults: 1 findings show in every control run, and no fault is blamed",)


def test_controls_that_lose_other_rows_are_unknown(folder: Folder) -> None:
    rows = payments(folder.records)
    folder.controls = [[rows[:7] + rows[8:]], [rows]]
    verdict = judge(folder.write())
    assert (verdict.word, verdict.kinds()) == (Word.UNKNOWN, {"lost": 1})
    assert "not deterministic without faults" in verdict.reasons[-1]


def test_what_the_guarantee_allows_asks_for_no_control(folder: Folder) -> None:
    folder.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    folder.steps, folder.injections = [at_point(HIT, "after row 5 in the sink")], [Injected(holds=15)]
    folder.tables = [payments(folder.records) + payments(folder.records[30:31])]
    out = judged(folder.write())
    assert (out.verdict.word, out.wants) == (Word.HELD, 0)


def test_recovered_records_of_a_control_are_none_of_its_findings(folder: Folder) -> None:
    folder.controls = [[payments(folder.records)]] * 2
    folder.write()
    recovered = replace(folder, states=lambda seq: State.UNKNOWN if seq < 3 else State.ACKNOWLEDGED)
    recovered._control(3, [payments(folder.records)])
    assert judge(folder.path).word is Word.VIOLATED


def test_a_control_that_failed_is_an_error_with_its_words(folder: Folder) -> None:
    folder.controls = ["the query died: boom"] * 2
    verdict = judge(folder.write())
    assert verdict.word is Word.ERROR
    assert verdict.reasons[0] == "the pipeline does not work without faults either: the query died: boom"


def test_a_control_that_failed_late_is_an_error_too(folder: Folder) -> None:
    folder.controls = [[payments(folder.records)]] * 2
    folder.write()
    for run in folder.path.glob("controls/*/run.json"):
        data = json.loads(run.read_text())
        run.write_text(json.dumps({**data, "outcome": {**data["outcome"], "error": "boom"}}))
    assert judge(folder.path).reasons[0] == "the pipeline does not work without faults either: boom"


@pytest.mark.parametrize("why", [{"drained": False}, {"reasons": ["the broker did not answer"]}])
def test_a_control_that_did_not_get_done_counts_for_nothing(folder: Folder, why: dict[str, object]) -> None:
    folder.controls = [[payments(folder.records)]] * 3
    run = folder.write() / "controls" / "2" / "run.json"
    data = json.loads(run.read_text())
    run.write_text(json.dumps({**data, "outcome": {**data["outcome"], **why}}))
    out = judged(folder.path)
    assert (out.verdict.word, out.wants) == (Word.UNKNOWN, 0)
    assert "only 2 of 3 control runs got done" in out.verdict.reasons[-1]


def test_a_damaged_control_is_a_clear_error(folder: Folder) -> None:
    folder.controls = [[payments(folder.records)]]
    control = folder.write() / "controls" / "1"
    (control / "plan.json").unlink()
    with pytest.raises(HarnessError, match=r"is damaged: .*it has no plan\.json"):
        judge(folder.path)
    (control / "run.json").write_text('{"outcome": "gone"}')
    with pytest.raises(HarnessError, match=r"is damaged: .*it has no plan\.json"):
        judge(folder.path)
    (control / "run.json").unlink()
    with pytest.raises(UsageError, match=r"it has no run\.json"):
        judge(folder.path)
