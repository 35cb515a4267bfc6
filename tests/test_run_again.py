"""What is run again after a driver had waited ready, and what comes of two runs that do not say the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import suite
from harness.load import load
from harness.run.loop import Result
from harness.run.plan import with_standby
from harness.scenario import Finding, Kind, Scenario, Verdict, Word
from harness.stack import Start
from harness.suite.options import Options
from harness.suite.run_again import AGAIN, ONE_IN, compared, drawn, wants_another

HOUSE = Path(__file__).parents[1]
SCENARIO = load(HOUSE / "scenarios" / "proving" / "append_before_offset_commit.yaml")
HELD = Verdict(word=Word.HELD, as_expected=True, expect="held")
TWICE = Finding(kind=Kind.DUPLICATED, sink="payments", key={"id": "1"})
VIOLATED = replace(HELD, word=Word.VIOLATED, findings=(TWICE,))


def stored(root: Path, verdict: Verdict, *starts: Start, name: str = "r00000001") -> Result:
    """A run whose attempts began so."""
    folder = root / f"20260101T000000-{name}"
    folder.mkdir(parents=True)
    outcome = {"starts": [{"number": n, "start": how} for n, how in enumerate(starts, 1)]}
    (folder / "run.json").write_text(json.dumps({"outcome": outcome}))
    return Result(verdict=verdict, folder=folder, seconds=1.0)


@pytest.mark.parametrize(
    ("verdict", "starts", "name", "wanted"),
    [
        (VIOLATED, (Start.COLD, Start.WARM), "r00000001", True),
        (VIOLATED, (Start.COLD, Start.COLD), "r00000001", False),
        (VIOLATED, (Start.COLD, Start.UNASKED), "r00000001", True),
        (VIOLATED, (Start.COLD, Start.FRESH), "r00000001", False),
        (HELD, (Start.COLD, Start.WARM), "r00000014", True),
        (HELD, (Start.COLD, Start.WARM), "r00000015", False),
        (HELD, (Start.COLD, Start.COLD), "r00000014", False),
        (replace(HELD, word=Word.VOID), (Start.COLD, Start.WARM), "r00000014", False),
    ],
)
def test_a_violation_that_began_warm_is_run_again_and_one_held_in_twenty(
    tmp_path: Path, verdict: Verdict, starts: tuple[Start, ...], name: str, wanted: bool
) -> None:
    assert wants_another(stored(tmp_path, verdict, *starts, name=name)) is wanted


def test_one_run_in_twenty_is_drawn() -> None:
    assert sum(drawn(f"20260101T000000-r{number:08x}") for number in range(1000)) == 1000 // ONE_IN


@pytest.mark.parametrize(
    ("second", "first", "same"),
    [
        (HELD, HELD, True),
        (VIOLATED, replace(VIOLATED, findings=(TWICE, TWICE)), True),
        (HELD, VIOLATED, False),
        (VIOLATED, HELD, False),
        # Another kind of harm is another answer.
        (replace(VIOLATED, findings=(replace(TWICE, kind=Kind.LOST),)), VIOLATED, False),
        # Under a weaker guarantee, a finding that it allows.
        (replace(HELD, findings=(TWICE,)), HELD, True),
        # It says nothing, for reasons of its own.
        (replace(HELD, word=Word.VOID, as_expected=False), VIOLATED, True),
    ],
)
def test_two_runs_that_do_not_agree_are_unknown(second: Verdict, first: Verdict, same: bool) -> None:
    found = compared(second, first, Path("there"))
    if same:
        assert found == second
    else:
        assert not found.as_expected and found.word is Word.UNKNOWN
        assert "began cold" in found.reasons[-1] and "there" in found.reasons[-1]


@pytest.mark.parametrize("second", [HELD, replace(HELD, word=Word.VOID)])
def test_two_runs_are_as_expected_only_if_both_are(second: Verdict) -> None:
    found = compared(second, replace(HELD, as_expected=False), Path("there"))
    assert (found.word, found.as_expected) == (second.word, False)
    assert "with one that had waited: there" in found.reasons[-1]


@pytest.mark.parametrize("keep", ["all", "failed", "none"])
def test_a_suite_shows_both_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str) -> None:
    """The second is asked for without a standby, and its word against the first one's makes the suite red."""
    played: list[bool | None] = []

    def run_one(scenario: Scenario, stack: object, **rest: Any) -> Result:
        played.append(scenario.restart.standby)
        warm = scenario.restart.standby
        starts = (Start.COLD, Start.WARM) if warm else (Start.COLD, Start.COLD)
        return stored(tmp_path / str(len(played)), VIOLATED if warm else HELD, *starts)

    class Stack:
        name = "processes"

    monkeypatch.setattr(suite, "run_one", run_one)
    monkeypatch.setattr("harness.report.render.write", lambda folder: folder)
    names: list[str] = []

    def listens(name: str) -> Any:
        names.append(name)
        return lambda event: None

    options = Options(keep=keep)
    rows = [*suite.confirmed(with_standby(SCENARIO), Stack(), options=options, listens=listens)]  # type: ignore[arg-type]
    assert played == [True, False]
    assert names == [row.scenario for row in rows] == [SCENARIO.name, SCENARIO.name + AGAIN]
    assert [(row.verdict.word, row.verdict.as_expected) for row in rows] == [
        (Word.VIOLATED, True),
        (Word.UNKNOWN, False),
    ]
    assert suite.exit_code(rows) == 3
    assert [row.folder is not None and row.folder.is_dir() for row in rows] == [keep != "none"] * 2
