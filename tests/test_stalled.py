"""Stalled, or slow: what the run's outcome says, held against the declared interval and the controls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.judge.control import Control, Decided
from harness.judge.folder import Run, read_run
from harness.judge.stalled import stalled
from harness.judge.strikes import Strike
from harness.scenario import Finding, Kind, Pipeline
from tests.folders import HIT, Folder, payments

LABEL = "kill driver at sink-committed of batch 1, attempt 1"
STRIKES = (
    Strike(number=1, outcome=replace(HIT, name="pause driver")),
    Strike(number=2, outcome=HIT),
)
WORDS = "nothing was committed in the last 91 s"
OPEN = f"{WORDS}; a control run without faults did not get done either"
FAILED = "the pipeline does not work without faults either: boom"
UNHURT = f"{WORDS}; unhurt it went {{}} s without a commit"
BLAMED = Finding(kind=Kind.STALLED, sink="", position=-1, note=WORDS, faults=(LABEL,))


def run(path: Path, said: object, interval: float | None = None) -> Run:
    folder = Folder(path / "run", outcome={"stalled": said})
    folder.tables = [payments(folder.records)]
    folder.claim(pipeline=Pipeline(entry="p.py", interval_s=interval))
    return read_run(folder.write())


def said(**changes: Any) -> dict[str, Any]:
    return {"kind": "idle", "idle_s": 91.0, "words": WORDS, **changes}


GAVE_UP = said(kind="gave up", idle_s=0.5)


@pytest.mark.parametrize("nothing", [None, "", {}])
def test_no_word_of_a_stall_is_none(tmp_path: Path, nothing: object) -> None:
    assert stalled(run(tmp_path, nothing), STRIKES, []) == Decided()


@pytest.mark.parametrize(
    ("interval", "decided"),
    [
        (91.0 / 3, Decided(unknown=[f"{WORDS}; that is no stall for an interval of 30.3333 s"])),
        (120.0, Decided(unknown=[f"{WORDS}; that is no stall for an interval of 120 s"])),
    ],
)
def test_a_declared_interval_says_how_long_is_too_long(tmp_path: Path, interval: float, decided: Decided) -> None:
    for controls in ([], [Control(number=1, error="boom")], [Control(number=1, gap_s=900.0)]):
        assert (
            stalled(run(tmp_path / str(len(controls)) / str(controls), said(), interval), STRIKES, controls) == decided
        )


@pytest.mark.parametrize(
    ("controls", "decided"),
    [
        ([], Decided(stand=[replace(BLAMED, faults=())], wants=1)),
        ([Control(number=1, gap_s=900.0)], Decided(stand=[BLAMED])),
        ([Control(number=1, error="boom")], Decided(error=["the pipeline does not work without faults either: boom"])),
        (
            [Control(number=1, open=True)],
            Decided(unknown=[f"{WORDS}; a control run without faults did not get done either"]),
        ),
    ],
)
def test_a_stall_beyond_the_declared_interval_is_blamed_once_a_control_got_done(
    tmp_path: Path, controls: list[Control], decided: Decided
) -> None:
    assert stalled(run(tmp_path, said(), 30.0), STRIKES, controls) == decided


@pytest.mark.parametrize(
    ("what", "control", "decided"),
    [
        (said(), Control(number=1, gap_s=30.0), Decided(stand=[BLAMED])),
        (said(), Control(number=1, gap_s=91.0 / 3), Decided(unknown=[UNHURT.format("30.3333")])),
        (said(), Control(number=1, gap_s=100.0), Decided(unknown=[UNHURT.format(100)])),
        (said(), Control(number=1, open=True), Decided(unknown=[OPEN])),
        (said(), Control(number=1, error="boom"), Decided(error=[FAILED])),
        (GAVE_UP, Control(number=1, error="boom"), Decided(error=[FAILED])),
    ],
)
def test_a_control_says_what_it_needs_unhurt(tmp_path: Path, what: object, control: Control, decided: Decided) -> None:
    assert stalled(run(tmp_path, what), STRIKES, [control]) == decided


CALM, DEAD = Control(number=1, gap_s=100.0), Control(number=2, error="boom")


@pytest.mark.parametrize(
    ("controls", "decided"),
    [
        ([CALM, CALM, CALM], Decided(stand=[BLAMED])),
        ([DEAD, DEAD, DEAD], Decided(error=[FAILED])),
        (
            [CALM, CALM, DEAD],
            Decided(unknown=[f"{WORDS}; without faults it failed in 1 of 3 control runs too: boom"]),
        ),
        ([CALM, CALM, Control(number=3, open=True)], Decided(unknown=[OPEN])),
        ([CALM, CALM], Decided(unknown=[f"{WORDS}; only 2 of 3 control runs were made"], wants=3)),
    ],
)
def test_who_gives_up_is_the_faults_victim_if_three_controls_live(
    tmp_path: Path, controls: list[Control], decided: Decided
) -> None:
    assert stalled(run(tmp_path, GAVE_UP), STRIKES, controls) == decided


def test_without_interval_and_control_nobody_can_tell_and_one_is_asked_for(tmp_path: Path) -> None:
    why = "no control run shows how long it takes unhurt: name `pipeline.interval`, or run it again"
    assert stalled(run(tmp_path, said()), STRIKES, []) == Decided(unknown=[f"{WORDS}; {why}"], wants=1)


def test_a_program_that_dies_by_itself_is_not_excused_by_its_interval(tmp_path: Path) -> None:
    assert stalled(run(tmp_path, GAVE_UP, 0.1), STRIKES, []).wants == 1
    dead = stalled(run(tmp_path / "b", GAVE_UP, 120.0), STRIKES, [CALM] * 3)
    assert dead == Decided(stand=[BLAMED])


def test_without_a_hit_nobody_is_blamed(tmp_path: Path) -> None:
    out = stalled(run(tmp_path, said()), (), [Control(number=1)])
    assert out.stand == [replace(BLAMED, faults=())]


@pytest.mark.parametrize(
    "word", ["it stood still", {"words": "it stood still", "idle_s": "long"}, {"words": "it stood still"}]
)
def test_a_stall_whose_length_nobody_knows_is_unknown(tmp_path: Path, word: object) -> None:
    out = stalled(run(tmp_path, word), STRIKES, [Control(number=1)])
    assert out == Decided(unknown=["it stood still; unhurt it went 0 s without a commit"])
    bare = stalled(run(tmp_path / "b", {"idle_s": 5}), STRIKES, [Control(number=1)])
    assert bare.stand == [replace(BLAMED, note="")]
