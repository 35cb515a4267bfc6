"""A sweep as a suite and as tests, on a stack that only pretends: rows, JUnit, exit codes, what git says of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import suite
from harness.errors import ScenarioError, UsageError
from harness.faults import fault
from harness.load import load
from harness.report.summary import Run
from harness.scenario import Attribution, Expected, Kind, Scenario, Step, Verdict, Word
from harness.suite.options import Options
from harness.sweep import command, swept
from harness.sweep.cells import Cell, Found
from harness.sweep.command import SweepOptions
from harness.sweep.shrink import RECORDS, REPEATS, shrink
from harness.sweep.since import changed
from harness.sweep.swept import Watched
from harness.triggers import TRIGGERS
from tests import sample_runs as sample
from tests.test_plugin import World, project, run, world

pytest_plugins = ["pytester"]
__all__ = ["project", "world"]
KILL = fault("kill driver")
FILE = """\
name: {name}
pipeline: pipelines/append.py
sink: {{postgres: payments, expected: "select id, account, amount from ledger", key: [id]}}
crash_points: all
verdict: {expected}
"""
TABLE = "{sink-committed: {violated: [duplicated]}}"
CELLS = [
    Cell(steps=(Step(when=TRIGGERS["point"].trigger(point), do=KILL),)) for point in ("batch-planned", "sink-committed")
]


def watched(scenario: Scenario, stack: object, options: Options, *, pairs: bool) -> Watched:
    base = replace(scenario, schedule=())
    return Watched(scenario=base, found=Found(cells=CELLS, first_batch=1), digest="d", seconds=1.0, start_s=1.0)


def verdict(scenario: Scenario) -> Verdict:
    """A kill at the commit of the sink is what duplicates; at another place it holds."""
    numbered = list(enumerate(scenario.schedule, 1))
    labels = {number: f"step {number}" for number, _ in numbered}
    broken = [number for number, step in numbered if step.when.point == "sink-committed"]
    return sample.verdict(
        word=Word.VIOLATED if broken else Word.HELD,
        steps=tuple(replace(sample.STEP, batch=step.when.batch) for _, step in numbered),
        exposures=tuple(replace(sample.loss(), step=number) for number, _ in numbered),
        findings=tuple(replace(sample.duplicated(number), faults=(labels[number],)) for number in broken),
        attribution=Attribution(causes=tuple((Kind.DUPLICATED, (number,)) for number in broken), labels=labels),
    )


@pytest.fixture
def playing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Runs come to what `verdict` says of their schedules; the folder of a user's project."""

    numbers = count()

    def one(scenario: Scenario, stack: Any, *, options: Options, listener: object) -> Run:
        folder = sample.stored(options.reports, verdict(scenario), asked=scenario, run_id=f"r{next(numbers)}")
        return replace(Run.read(folder.path), verdict=verdict(scenario))

    @contextmanager
    def up(stack: object) -> Iterator[object]:
        yield stack

    monkeypatch.setattr(swept, "one", one)
    monkeypatch.setattr(swept, "_sound", lambda run: True)
    for module in (swept, command):
        monkeypatch.setattr(module, "watch", watched)
    monkeypatch.setattr(suite, "up", up)
    monkeypatch.setattr(suite, "stack_of", lambda options, work: SimpleNamespace(name="processes", health=lambda: None))
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "append.py").write_text("print()\n")
    (tmp_path / ".git").mkdir()
    return tmp_path


def file(home: Path, name: str, expected: str) -> Path:
    path = home / "scenarios" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(FILE.format(name=name, expected=expected))
    return path


@pytest.mark.parametrize(
    ("expected", "code", "failures"),
    [
        ("held", 1, ["orders: kill driver sink-committed (later batch)"]),
        (TABLE, 0, []),
        ("{violated: [duplicated]}", 0, []),
        ("{batch-planned: {violated: [lost]}}", 1, [
            "orders: kill driver batch-planned (later batch)", "orders: kill driver sink-committed (later batch)"
        ]),
    ],
)  # fmt: skip
def test_each_cell_is_a_case_of_junit_and_a_row_of_the_summary(
    playing: Path, capsys: pytest.CaptureFixture[str], expected: str, code: int, failures: list[str]
) -> None:
    path, junit = file(playing, "orders", expected), playing / "junit.xml"
    options = Options(reports=playing / "reports", jobs=1, junit=junit)
    assert command.run([path], options) == code
    cases = {each.get("name"): each.find("failure") for each in ElementTree.parse(junit).iter("testcase")}
    assert len(cases) == len(CELLS)
    assert [name for name, failure in cases.items() if failure is not None] == failures
    assert f"{path}: breaks at 1 of 2 exposed cells (duplicated)" in capsys.readouterr().out
    assert not (playing / "reports" / "sweep-orders.jsonl").exists()
    (failing,) = (playing / "reports" / "failing").glob("*.yaml")
    assert load(failing).schedule[0].when.point == "sink-committed"


def test_a_sweep_says_which_cells_are_not_as_expected(playing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(playing, "orders", "{batch-planned: {violated: [lost]}}")
    assert command.sweep([path], Options(reports=playing / "reports", jobs=1), SweepOptions()) == 1
    said = capsys.readouterr().out
    assert "not as expected: kill driver batch-planned (later batch)" in said
    assert "not as expected: kill driver sink-committed (later batch)" in said


def test_a_pipeline_that_does_not_work_fails_alone(
    playing: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def watch(scenario: Scenario, *rest: Any, **more: Any) -> Watched:
        if scenario.name == "broken":
            raise UsageError("asked to sweep it; without faults it does not work")
        return watched(scenario, *rest, **more)

    monkeypatch.setattr(command, "watch", watch)
    paths = [file(playing, name, TABLE) for name in ("broken", "orders")]
    junit = playing / "junit.xml"
    assert command.run(paths, Options(reports=playing / "reports", jobs=1, junit=junit)) == 4
    assert "without faults it does not work" in capsys.readouterr().err
    cases = {each.get("name"): each.find("error") is not None for each in ElementTree.parse(junit).iter("testcase")}
    assert cases.pop("broken")
    assert len(cases) == len(CELLS)
    assert not any(cases.values())


def test_each_cell_is_a_subtest(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World, playing: Path
) -> None:
    project("scenarios/broken.yaml", text=FILE.format(name="broken", expected="held"))
    project("scenarios/told.yaml", text=FILE.format(name="told", expected=TABLE))
    result = run(pytester, "scenarios", "-v", "--junitxml=out.xml")
    result.stdout.fnmatch_lines(
        [
            "*broken.yaml::broken SUBPASSED[[]kill driver batch-planned (later batch)[]]*",
            "*broken.yaml::broken SUBFAILED[[]kill driver sink-committed (later batch)[]]*",
            "*told.yaml::told SUBPASSED[[]kill driver sink-committed (later batch)[]]*",
            "*told.yaml::told PASSED*",
            "*VIOLATED (1 duplicated), expected held or untested: broken: kill driver sink-committed*",
            "scenarios/broken.yaml: breaks at 1 of 2 exposed cells (duplicated)",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (world.ups, world.downs) == (1, 1)


def git(folder: Path, *words: str) -> None:
    own = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True)


def test_only_pipelines_of_which_a_file_has_changed_are_swept(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "jobs" / name).mkdir(parents=True)
        (tmp_path / "jobs" / name / "job.py").write_text("print()\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "begin")
    own = [
        sample.scenario(
            name=name,
            path=str(tmp_path / f"{name}.yaml"),
            pipeline=replace(sample.scenario().pipeline, entry=f"jobs/{name}/job.py"),
        )
        for name in ("a", "b")
    ]
    assert changed(own, "HEAD") == []
    (tmp_path / "jobs" / "a" / "helper.py").write_text("x = 1\n")
    assert changed(own, "HEAD") == own[:1]
    (tmp_path / "b.yaml").write_text("name: b\n")
    assert changed(own, "HEAD") == own
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "more")
    assert changed(own, "HEAD") == []
    assert changed(own, "HEAD~1") == own
    for wrong in ("nowhere", "--output=x"):
        with pytest.raises(UsageError, match="Name a commit"):
            changed(own, wrong)
    assert not (tmp_path / "x").exists()


def test_where_there_is_no_repository_nothing_is_guessed(tmp_path: Path) -> None:
    scenario = sample.scenario(path=str(tmp_path / "a.yaml"))
    with pytest.raises(UsageError, match="asked for what has changed since main"):
        changed([scenario], "main")


def test_what_is_expected_is_told_in_words() -> None:
    table = Expected(at={"sink-committed": Expected(word=Word.VIOLATED, kinds=(Kind.LOST,)), "rows": Expected()})
    assert str(table) == "violated: lost at sink-committed; held at rows"
    assert table.violations == (Kind.LOST,)


def test_a_violated_cell_is_made_smaller_for_as_long_as_it_breaks(
    playing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(playing, "orders", "held")
    options = Options(reports=playing / "reports", jobs=1)
    assert command.sweep([path], options, SweepOptions(shrink=True)) == 1
    (failing,) = (playing / "reports" / "failing").glob("*.yaml")
    small = load(failing)
    assert (small.input.records, small.input.source_options) == (30, {"partitions": 1})
    assert [step.when.batch for step in small.schedule] == [2]
    assert small.why == "30 records, batch 2; it breaks 3 of 3 times"
    assert f"{failing}: {small.why}" in capsys.readouterr().out


LARGE = replace(
    sample.scenario(),
    schedule=(replace(sample.scenario().schedule[0], when=TRIGGERS["point"].trigger("sink-committed", batch=9)),),
)


@given(st.integers(1, 900), st.booleans(), st.booleans())
def test_what_is_shrunk_still_breaks_and_no_part_of_it_can_be_smaller(least: int, wide: bool, late: bool) -> None:
    played = list[Scenario]()

    def breaks(scenario: Scenario) -> bool:
        played.append(scenario)
        enough = scenario.input.records >= least
        many = not wide or scenario.input.source_options.get("partitions") != 1
        return enough and many and (not late or scenario.schedule[0].when.batch == 9)

    found = shrink(LARGE, 1, breaks)
    if not breaks(LARGE):
        assert (found.scenario, found.repeats) == (LARGE, 0)
        return
    assert found.repeats == REPEATS
    assert breaks(found.scenario)
    assert found.scenario.input.records == min(size for size in (*RECORDS, 600) if size >= least)
    assert (found.scenario.input.source_options.get("partitions") == 1) is not wide
    assert found.scenario.schedule[0].when.batch == (9 if late else 2)
    assert len(played) <= 2 * REPEATS + 9


def test_a_violation_by_chance_says_so() -> None:
    answers = iter([True, False, False, False, True, False, False])
    found = shrink(LARGE, 1, lambda scenario: next(answers))
    assert (found.scenario, found.repeats) == (LARGE, 1)
    assert found.description == "600 records, batch 9; it breaks 1 of 3 times"


def test_a_step_of_the_first_batch_stays_there() -> None:
    (step,) = LARGE.schedule
    first = replace(LARGE, schedule=(replace(step, when=replace(step.when, batch=1)),))
    assert shrink(first, 1, lambda scenario: True).scenario.schedule == first.schedule


@pytest.mark.parametrize(
    ("expected", "cells", "said"),
    [
        ("{violated: [lost]}", CELLS[:1], (1, "held")),
        ("{violated: [duplicated]}", CELLS[:1], (1, "held")),
        ("held", [], (3, "untested")),
    ],
)
def test_what_no_cell_alone_says_is_a_row_of_its_own(
    playing: Path, monkeypatch: pytest.MonkeyPatch, expected: str, cells: list[Cell], said: tuple[int, str]
) -> None:
    """Or a sweep that fails would have a green JUnit."""

    def watch(scenario: Scenario, *rest: Any, **more: Any) -> Watched:
        return replace(watched(scenario, *rest, **more), found=Found(cells=cells, first_batch=1))

    monkeypatch.setattr(command, "watch", watch)
    code, word = said
    path, junit = file(playing, "orders", expected), playing / "junit.xml"
    options = Options(reports=playing / "reports", jobs=1, junit=junit)
    assert command.run([path], options) == code
    (root,) = ElementTree.parse(junit).getroot()
    wrong = [each for each in root.iter("testcase") if each.find("failure") is not None]
    assert [(each.get("name"), cast(Any, each.find("failure")).get("type")) for each in wrong] == [("orders", word)]
    summary = json.loads((playing / "reports" / "latest" / "summary.json").read_text(encoding="utf-8"))
    assert summary["exit_code"] == code


def test_a_cell_that_was_not_tried_is_no_pass_where_it_is_named(playing: Path) -> None:
    options = Options(reports=playing / "reports", jobs=1, junit=playing / "junit.xml")
    path = file(playing, "orders", TABLE)
    assert command.sweep([path], options, SweepOptions(for_s=-1.0)) == 3
    cases = {
        each.get("name"): each.find("failure") for each in ElementTree.parse(playing / "junit.xml").iter("testcase")
    }
    assert [name for name, failure in cases.items() if failure is not None] == [
        "orders: kill driver sink-committed (later batch)"
    ]


def test_a_known_failure_of_a_sweep_decides_no_exit_code(playing: Path) -> None:
    path = file(playing, "orders", "held")
    path.write_text(path.read_text() + "known: {issue: https://x.org/7, until: 9999-12-31, violated: [duplicated]}\n")
    options = Options(reports=playing / "reports", jobs=1, junit=playing / "junit.xml")
    assert command.run([path], options) == 0
    assert [each.tag for each in ElementTree.parse(playing / "junit.xml").iter("skipped")] == ["skipped"]


@pytest.mark.parametrize(("keep", "left"), [("all", 1), ("failed", 1), ("none", 0)])
def test_run_folders_stay_until_the_answer_and_then_those_that_are_asked_for(
    playing: Path, keep: str, left: int
) -> None:
    options = Options(reports=playing / "reports", jobs=1, keep=keep)
    assert command.run([file(playing, "orders", "held")], options) == 1
    assert len([each for each in (playing / "reports" / "orders").glob("*") if not each.is_symlink()]) == left
    assert command.run([file(playing, "told", TABLE)], replace(options, keep="failed")) == 0
    assert [each for each in (playing / "reports" / "told").glob("*") if not each.is_symlink()] == []


def test_a_sweep_whose_run_folders_are_gone_plays_them_again(playing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, options = file(playing, "orders", TABLE), Options(reports=playing / "reports", jobs=1)
    answer = command._answer
    monkeypatch.setattr(command, "_answer", lambda *rest: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        command.run([path], options)
    shutil.rmtree(playing / "reports" / "orders")
    monkeypatch.setattr(command, "_answer", answer)
    assert command.run([path], options) == 0


def test_a_sweep_is_not_repeated(playing: Path) -> None:
    with pytest.raises(UsageError, match="leave out --repeat"):
        command.run([file(playing, "orders", TABLE)], Options(reports=playing / "reports", jobs=1, repeat=2))


@pytest.mark.parametrize("keep", ["none", "failed"])
def test_pytest_removes_each_run_folder_once(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World, playing: Path, keep: str
) -> None:
    project("scenarios/broken.yaml", text=FILE.format(name="broken", expected="held"))
    result = run(pytester, "scenarios", f"--harness-keep={keep}")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in result.stdout.str()
    left = [each for each in (pytester.path / "reports" / "broken").glob("*") if not each.is_symlink()]
    assert bool(left) is (keep == "failed")


def test_pytest_says_a_sweep_that_could_not_be_played(
    pytester: pytest.Pytester,
    project: Callable[..., Path],
    world: World,
    playing: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def watch(*rest: Any, **more: Any) -> Watched:
        raise UsageError("asked to sweep it; without faults it does not work")

    monkeypatch.setattr(swept, "watch", watch)
    project("scenarios/broken.yaml", text=FILE.format(name="broken", expected="held"))
    result = run(pytester, "scenarios")
    result.stdout.fnmatch_lines(["*without faults it does not work*", "!!*error*broken*", "exit code of onceproof: 4*"])


def test_two_sweeps_of_one_name_are_refused_when_they_are_collected(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    for path in ("scenarios/a.yaml", "scenarios/b.yaml"):
        project(path, text=FILE.format(name="orders", expected="held"))
    result = run(pytester, "scenarios")
    result.stdout.fnmatch_lines(["scenarios/a.yaml has the name 'orders', too; give each sweep another name"])
    assert result.ret == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("verdict: untested", "verdict: untested is for a schedule, or for single crash points"),
        ("verdict: {violated: [lost], without_faults: true}", "a pipeline that is wrong without faults is not swept"),
        ("verdict: {violated: [lost], x: held}", "verdict names each crash point that is not held"),
        ("verdict: {at: {x: held}}", "unknown key 'verdict.at': what it names belongs under verdict itself"),
        ("verdict: {default: untested}", "verdict.default must be one of held, not 'untested'"),
        ("verdict: {defalt: held}", "unknown key 'verdict.defalt'; did you mean 'default'?"),
        ("verdict: {after rename of commits, a: held}", "says nothing; a comma ends a value inside { }"),
        ("crash_points: named", "crash_points are those that verdict names, and it names none"),
        ("schedule: []", "a scenario has crash_points or a schedule: leave out one of them"),
        ("verdict: {x: {violated: []}}", "verdict.x.violated names no kind of finding"),
        (
            "verdict: {x: wrong}",
            "verdict.x must be one of held, inconclusive, untested, {violated: [KIND]}, not 'wrong'",
        ),
    ],
)
def test_what_a_sweep_cannot_answer_is_a_mistake_of_the_file(playing: Path, line: str, words: str) -> None:
    path = file(playing, "orders", "held")
    lines = [each for each in path.read_text().splitlines() if not each.startswith(line.partition(":")[0])]
    path.write_text("\n".join([*lines, line, ""]))
    with pytest.raises(ScenarioError) as refused:
        load(path)
    assert any(words in each.text for each in refused.value.mistakes), refused.value.mistakes


def test_crash_points_that_the_verdict_names_are_tried(playing: Path) -> None:
    path = file(playing, "orders", TABLE)
    path.write_text(path.read_text().replace("crash_points: all\n", "crash_points: named\n"))
    assert load(path).crash_points == tuple(load(path).verdict.at)


def test_crash_points_in_the_verdict_of_a_schedule_are_a_mistake(playing: Path) -> None:
    path = file(playing, "orders", TABLE)
    path.write_text(path.read_text().replace("crash_points: all\n", ""))
    with pytest.raises(ScenarioError, match=r"'verdict\.sink-committed': crash points are named for a sweep"):
        load(path)
