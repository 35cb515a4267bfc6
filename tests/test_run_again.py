"""What is run again after a driver had waited ready, and what comes of two runs that do not say the same."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness import suite
from harness.errors import HarnessError, UsageError
from harness.judge import judge
from harness.load import load
from harness.report import render, summary, table
from harness.report.ci import junit, markdown, sarif, told
from harness.report.summary import Run
from harness.run.loop import Result
from harness.run.plan import with_standby
from harness.run_folder import again, sealed
from harness.scenario import Disagreement, Expect, Finding, Kind, Scenario, Verdict, Word
from harness.scenario.disagreement import Said
from harness.stack import Start
from harness.suite.options import Options
from harness.suite.run_again import AGAIN, ALONE, ONE_IN, compared, drawn, record, wants_another
from tests.folders import Folder, payments

HOUSE = Path(__file__).parents[1]
SCENARIO = load(HOUSE / "scenarios" / "proving" / "append_before_offset_commit.yaml")
HELD = Verdict(word=Word.HELD, as_expected=True, expect="held")
TWICE = Finding(kind=Kind.DUPLICATED, sink="payments", key={"id": "1"})
GONE = replace(TWICE, kind=Kind.LOST)
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
        (VIOLATED, (Start.COLD, Start.FRESH), "r00000001", True),
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
        (replace(VIOLATED, findings=(GONE,)), VIOLATED, False),
        (replace(VIOLATED, findings=(TWICE, GONE)), VIOLATED, False),
        # The order in which they were found is none.
        (replace(VIOLATED, findings=(TWICE, GONE)), replace(VIOLATED, findings=(GONE, TWICE)), True),
        # What was recovered is legal, and comes by chance.
        (replace(VIOLATED, findings=(TWICE, replace(TWICE, kind=Kind.RECOVERED))), VIOLATED, True),
        # Under a weaker guarantee, a finding that it allows.
        (replace(HELD, findings=(TWICE,)), HELD, True),
        # It says nothing, for reasons of its own.
        (replace(HELD, word=Word.VOID, as_expected=False), VIOLATED, True),
    ],
)
def test_two_runs_that_do_not_agree_are_a_finding(second: Verdict, first: Verdict, same: bool) -> None:
    found = compared(second, first, folders=(Path("cold"), Path("waited")))
    if same:
        assert found == second
        return
    assert not found.as_expected and found.word is Word.UNKNOWN
    assert found.kinds() == {**second.kinds(), "disagreement": 1}
    assert found.disagreement == Disagreement(
        waited=Said(word=first.word.value, kinds=tuple(sorted(first.kinds())), run="waited"),
        cold=Said(word=second.word.value, kinds=tuple(sorted(second.kinds())), run="cold"),
    )


@pytest.mark.parametrize("second", [HELD, replace(HELD, word=Word.VOID)])
def test_two_runs_are_as_expected_only_if_both_are(second: Verdict) -> None:
    found = compared(second, replace(HELD, as_expected=False), folders=(None, Path("there")))
    assert (found.word, found.as_expected, found.disagreement) == (second.word, False, None)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Result]:
    """Runs as the loop leaves them: one that wrote a batch twice after a driver had waited ready, one that held."""
    out = {}
    for twice in (True, False):
        made = Folder(tmp_path_factory.mktemp("finished") / "run")
        made.claim(expect=Expect(word=Word.VIOLATED, kinds=(Kind.DUPLICATED,)))
        rows = payments(made.records)
        made.tables = [rows + rows[10:20] * twice]
        starts = (Start.COLD, Start.WARM if twice else Start.COLD)
        made.outcome = {"starts": [{"number": n, "start": how} for n, how in enumerate(starts, 1)]}
        stored = made.sealed()
        verdict = stored.verdict()
        assert verdict is not None
        out[twice] = Result(verdict=verdict, folder=stored.path, seconds=1.0)
    return out


def copied(result: Result, folder: Path) -> Result:
    """The same, in a folder of its own."""
    shutil.copytree(result.folder, folder)
    return replace(result, folder=folder)


class Stack:
    """Nothing runs on it."""

    name = "processes"


@pytest.fixture
def rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, finished: dict[bool, Result]
) -> list[Run]:
    """What a suite makes of a run that is violated with a standby, and holds without."""
    played: list[bool | None] = []
    names: list[str] = []

    def run_one(scenario: Scenario, stack: object, **rest: Any) -> Result:
        warm = bool(scenario.restart.standby)
        played.append(warm)
        folder = tmp_path / "reports" / "by-hand" / f"20260101T000000-r0000000{len(played)}"
        return copied(finished[warm], folder)

    def listens(name: str) -> Any:
        names.append(name)
        return lambda event: None

    monkeypatch.setattr(suite, "run_one", run_one)
    options = Options(keep=getattr(request, "param", "all"))
    later = list[Iterator[Run]]()
    stack: Any = Stack()
    out = [*suite.confirmed(with_standby(SCENARIO), stack, options=options, listens=listens, later=later.append)]
    # As expected: nobody asks who was beside it.
    assert not later
    assert played == [True, False]
    assert names == [row.scenario for row in out] == [SCENARIO.name, SCENARIO.name + AGAIN]
    return out


@pytest.mark.parametrize("standby", [True, False])
def test_a_violation_that_nobody_expected_is_played_again_alone_and_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: dict[bool, Result], standby: bool
) -> None:
    """Another run beside it may have done it."""
    asked: list[tuple[str, int, bool]] = []
    at_work = set[int]()
    both, lock = threading.Barrier(2, timeout=120), threading.Lock()

    def run_one(scenario: Scenario, stack: object, **rest: Any) -> Result:
        with lock:
            at_work.add(threading.get_ident())
            number = len(asked)
            asked.append((scenario.name, len(at_work), bool(scenario.restart.standby)))
        if number < 2:
            both.wait()
        done = copied(
            finished[number < 2 and scenario.name == "meets"], tmp_path / f"20260101T000000-r0000000{number + 1}"
        )
        at_work.discard(threading.get_ident())
        verdict = replace(done.verdict, as_expected=done.verdict.word is Word.HELD)
        return replace(done, verdict=verdict)

    def wants_another(result: Result) -> bool:
        return standby and result.verdict.word is Word.VIOLATED

    @contextmanager
    def up(stack: object) -> Iterator[object]:
        yield stack

    stack: Any = SimpleNamespace(name="processes", health=lambda: None)
    monkeypatch.setattr(suite, "run_one", run_one)
    monkeypatch.setattr(suite, "wants_another", wants_another)
    monkeypatch.setattr(suite, "stack_of", lambda options, work: stack)
    monkeypatch.setattr(suite, "up", up)
    work = [replace(SCENARIO, name=name) for name in ("meets", "holds", "last")]
    reports = tmp_path / "reports"
    code = suite.run_all(work, Options(jobs=2, reports=reports, standby=standby))
    assert [name for name, *_ in asked].count("meets") == 2
    assert asked[-1] == ("meets", 1, False)
    runs = json.loads((reports / "latest" / "summary.json").read_text())["runs"]
    assert [(run["scenario"], run["verdict"]) for run in runs] == [
        ("meets", "violated"),
        ("meets" + ALONE, "unknown"),
        ("holds", "held"),
        ("last", "held"),
    ]
    found = runs[1]["disagreement"]
    assert (found["standby"], found["beside"], code) == (standby, True, 1)
    assert [again.read(Path(run["folder"])) is not None for run in runs[:2]] == [True, True]


@pytest.mark.parametrize("rows", ["all", "failed", "none"], indirect=True)
def test_a_suite_shows_both_runs(rows: list[Run], request: pytest.FixtureRequest) -> None:
    """The second is asked for without a standby, and its word against the first one's makes the suite red."""
    assert [(row.verdict.word, row.verdict.as_expected) for row in rows] == [
        (Word.VIOLATED, True),
        (Word.UNKNOWN, False),
    ]
    assert suite.exit_code(rows) == 3
    kept = request.node.callspec.params["rows"] != "none"
    assert [row.folder is not None and row.folder.is_dir() for row in rows] == [kept] * 2


def test_the_finding_is_told_wherever_a_run_is(rows: list[Run]) -> None:
    first, second = rows
    assert second.verdict.disagreement is not None
    sides = [("violated", ("duplicated",), str(first.folder)), ("held", (), str(second.folder))]
    found = second.verdict.disagreement
    assert [(side.word, side.kinds, side.run) for side in (found.waited, found.cold)] == sides
    entry = summary.entry(second)
    assert (entry["verdict"], entry["findings"], entry["exit_code"]) == ("unknown", {"disagreement": 1}, 3)
    both = [entry["disagreement"][side] for side in ("waited", "cold")]
    assert [(side["word"], side["kinds"], side["run"]) for side in both] == sides
    assert summary.entry(first)["disagreement"] is None
    assert Run.unpack(json.loads(json.dumps(second.pack()))) == second
    results = sarif.document([second])["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["disagreement"]
    for text in (results[0]["message"]["text"], junit.text([second]), told.failure(second)):
        assert all(str(row.folder) in text for row in rows) and "violated (duplicated)" in text
    assert "1 disagreement" in table.text([second]) and "1 disagreement" in markdown.summary([second])


def test_the_finding_stands_in_both_folders_and_no_judge_reads_it(rows: list[Run]) -> None:
    for row, word in zip(rows, (Word.VIOLATED, Word.UNKNOWN), strict=True):
        assert row.folder is not None
        folder = sealed.opened(row.folder).path
        stored = Run.read(folder).verdict
        assert (stored.word, stored.kinds().get("disagreement")) == (word, 1)
        judged = judge(folder)
        assert judged.disagreement is None
        (folder / again.NAME).unlink()
        assert judge(folder) == judged


def test_the_page_of_each_names_the_other_and_no_folder_of_the_machine(rows: list[Run], tmp_path: Path) -> None:
    for row in rows:
        assert row.folder is not None
        page = (row.folder / "report.html").read_text(encoding="utf-8")
        assert page == render.write(row.folder).read_text(encoding="utf-8")
        assert 'id="disagreement"' in page and str(tmp_path) not in page
        assert all(f"by-hand/{each.folder.name}" in page for each in rows if each.folder)


def test_check_of_a_run_that_another_disagrees_with(rows: list[Run], capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (row.folder for row in rows)
    assert first is not None and second is not None
    assert suite.check(second) == 3
    assert suite.check(first) == 0
    said = capsys.readouterr().out
    assert said.count("disagreement of two runs") == 2 and "the run itself had said" not in said


def test_a_finding_that_was_altered_is_named(rows: list[Run]) -> None:
    folder = rows[1].folder
    assert folder is not None
    text = (folder / again.NAME).read_text(encoding="utf-8")
    (folder / again.NAME).write_text(text.replace('"held"', '"void"'), encoding="utf-8")
    with pytest.raises(HarnessError, match=r"again\.json: altered"):
        sealed.opened(folder)
    (folder / again.NAME).write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"again\.json is damaged"):
        again.read(folder)


def test_nothing_is_written_into_a_run_that_is_not_as_it_was_left(rows: list[Run]) -> None:
    first, second = rows
    assert first.folder is not None and second.folder is not None
    (first.folder / again.NAME).unlink()
    with pytest.raises(HarnessError, match="not as the run left it"):
        record(second.verdict, first.folder, second.folder)
    assert not (first.folder / again.NAME).exists()


def test_two_runs_that_agree_leave_nothing(finished: dict[bool, Result]) -> None:
    first = second = finished[False]
    assert record(compared(second.verdict, first.verdict, folders=(second.folder, first.folder)), first.folder) == []
    assert not (first.folder / again.NAME).exists() and again.beside(first.verdict, first.folder) == first.verdict
