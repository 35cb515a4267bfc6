"""The pytest plugin, on a run loop that only pretends: collection, options, failure text, JUnit, summary."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.errors import HarnessError, SetupError, StackError
from harness.plugin.files import recognise
from harness.plugin.suite import quiet
from harness.scenario import Scenario, Verdict, Word
from tests import sample_runs as sample
from tests.limits import PROCESS_S

with quiet():
    from harness.run import loop
    from harness.stacks.processes import shared
    from harness.suite import suite_stack

pytest_plugins = ["pytester"]

FILE = """\
name: {name}
pipeline: pipelines/append.py
tags: [{tags}]
sink:
  - postgres: payments
    expected: select id, account, amount from ledger
    key: [id]
schedule:
  - {{when: {{point: sink-committed, batch: 3}}, do: kill driver}}
verdict: held
"""


class FakeStack:
    """Counts how often it comes up and goes down."""

    name = "fake"

    def __init__(self, world: World) -> None:
        self.world = world

    def up(self) -> None:
        self.world.ups += 1
        if self.world.broken:
            raise StackError(self.world.broken)

    def health(self) -> None:
        """It lives."""

    def down(self) -> None:
        self.world.downs += 1


@dataclass
class World:
    """What the fake run loop answers, and what it was asked."""

    answers: dict[str, Verdict | HarnessError] = field(default_factory=dict)
    asked: list[tuple[str, int | None]] = field(default_factory=list)
    sparks: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    stacks: list[str] = field(default_factory=list)
    ups: int = 0
    downs: int = 0
    broken: str = ""

    def open_stack(self, name: str, reports: Path, where: object = None, *, needs: object = ()) -> FakeStack:
        self.opened.append(name)
        return FakeStack(self)

    def run(
        self, scenario: Scenario, stack: FakeStack, *, reports: Path, seed: int | None, listener: Any = None
    ) -> loop.Result:
        self.stacks.append(stack.name)
        self.asked.append((scenario.name, seed))
        self.sparks.append(scenario.pipeline.spark)
        answer = self.answers.get(scenario.name, sample.held())
        if isinstance(answer, HarnessError):
            raise answer
        folder = sample.stored(reports, answer, asked=scenario, run_id=f"r{len(self.asked)}")
        return loop.Result(verdict=answer, folder=folder.path, seconds=1.5)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(suite_stack, "open_stack", made.open_stack)
    monkeypatch.setattr(loop, "run", made.run)
    return made


@pytest.fixture
def project(pytester: pytest.Pytester, world: World) -> Iterator[Callable[..., Path]]:
    """A user's project with a pipeline; the function adds a scenario file."""
    pytester.makefile(".toml", pyproject="[project]\nname = 'mine'\n")
    pytester.mkdir("pipelines").joinpath("append.py").write_text("print()\n")

    def add(path: str, *, name: str = "", tags: str = "", text: str = "") -> Path:
        file = pytester.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text or FILE.format(name=name or file.stem, tags=tags))
        return file

    yield add


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    # The plug-in under test is loaded already, by the pytest that runs this one inside itself.
    alone = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
    return pytester.runpytest_inprocess(*alone, *args)


def test_scenario_files_are_tests_on_one_stack(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/one.yaml")
    project("scenarios/deep/two.yml")
    result = run(pytester, "scenarios", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "onceproof *: 2 scenarios, stack processes, the seed of each file, reports in reports",
            "scenarios/deep/two.yml::two PASSED*",
            "scenarios/one.yaml::one PASSED*",
            "*Onceproof*",
            "ok  held*1/1*two",
            "2 runs: 2 as expected",
            "report: reports/latest/index.html",
        ]
    )
    assert (world.ups, world.downs, world.opened) == (1, 1, ["processes"])
    assert sorted(world.asked) == [("one", None), ("two", None)]
    data = json.loads((pytester.path / "reports/latest/summary.json").read_text())
    assert [entry["scenario"] for entry in data["runs"]] == ["two", "one"]
    assert len(list((pytester.path / "reports").glob("*/2*/report.html"))) == 2


def test_what_is_said_of_the_stack_is_told_at_the_end(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though all tests pass."""
    project("scenarios/one.yaml")
    project("scenarios/two.yaml")
    why = "the stack that is up was started with another environment; starting one for this command"
    monkeypatch.setattr(shared, "usable", lambda notify: notify(why))
    result = run(pytester, "scenarios")
    result.assert_outcomes(passed=2)
    assert result.stdout.lines.count(why) == 1


def test_what_is_told_of_a_run_can_be_sent_by_a_worker_of_xdist(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/bad.yaml", name="an append")
    world.answers["an append"] = sample.verdict()
    pytester.makeconftest(
        "import execnet\n"
        "def pytest_runtest_logreport(report):\n"
        "    runs = getattr(report, 'onceproof_runs', None)\n"
        "    print('sent', len(execnet.dumps((runs, report.user_properties))) > 0, runs is not None)"
    )
    result = run(pytester, "scenarios/bad.yaml", "-s")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*sent True True*"])


def test_the_failure_text_is_ours_and_nothing_else(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/bad.yaml", name="an append")
    world.answers["an append"] = sample.verdict()
    result = run(pytester, "scenarios/bad.yaml")
    result.stdout.fnmatch_lines(["VIOLATED (1 duplicated, *", "  exposed: *", "  found: duplicated *", "report: *"])
    result.stdout.no_fnmatch_line("     !  amount*")
    result = run(pytester, "scenarios/bad.yaml", "-v")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "VIOLATED (1 duplicated, 1 corrupted, 1 lost), expected held: an append",
            "  1. duplicated in postgres payments: id=17, 1 row too many",
            "     record 0/217 (partition/offset); batch 3; after kill driver at *",
            "     !  amount   10.00     10.01",
            "report: reports/an-append/*-r2/report.html",
            "again:  onceproof replay reports/an-append/*-r2",
            "!!  *an append *",
        ]
    )
    result.stdout.no_fnmatch_line("*Error*")
    result.stdout.no_fnmatch_line("*.py:*")


@pytest.mark.parametrize("word", [Word.INCONCLUSIVE, Word.UNTESTED])
def test_a_run_without_an_answer_fails_with_its_word(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World, word: Word
) -> None:
    project("scenarios/a.yaml")
    world.answers["a"] = sample.verdict(word=word, findings=(), reasons=("the reason",))
    result = run(pytester, "scenarios")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"{word.upper()}, expected held: a", "  because: the reason"])


def test_an_error_of_the_harness_is_its_message(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/a.yaml")
    project("scenarios/b.yaml")
    world.answers["a"] = SetupError("the pipeline committed no batch within 60 s; see driver-1.log")
    result = run(pytester, "scenarios")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["the pipeline committed no batch*", "!!  error* a*", "ok  held* b"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*.py:*")


def test_a_stack_that_does_not_come_up_is_said_and_taken_down(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/a.yaml")
    world.broken = "Kafka did not come up: port 9092 is taken"
    result = run(pytester, "scenarios")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["Kafka did not come up: port 9092 is taken", "!!  error* a*"])
    result.stdout.no_fnmatch_line("*.py:*")
    assert (world.ups, world.downs) == (1, 1)


def test_a_wrong_file_is_shown_by_its_lines_before_anything_starts(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/good.yaml")
    project("scenarios/wrong.yaml", text=FILE.format(name="x", tags="").replace("do: kill driver", "do: kil driver"))
    result = run(pytester, "scenarios")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*scenarios/wrong.yaml:9:*kil driver*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    assert world.ups == 0


def test_selection_by_name_tag_and_stack(pytester: pytest.Pytester, project: Callable[..., Path], world: World) -> None:
    project("scenarios/one.yaml", tags="quick")
    project("scenarios/two.yaml")
    run(pytester, "scenarios", "-k", "two", "--strict-markers").assert_outcomes(passed=1, deselected=1)
    run(pytester, "scenarios", "-m", "quick", "--strict-markers").assert_outcomes(passed=1, deselected=1)
    run(pytester, "scenarios", "-m", "not stack").assert_outcomes(deselected=2)
    assert [name for name, _ in world.asked] == ["two", "one"]


def test_what_the_stack_does_not_support_is_named_and_not_run(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    path = project("scenarios/cut.yaml")
    path.write_text(path.read_text().replace("do: kill driver", "do: disconnect driver, for: 3s"))
    result = run(pytester, "scenarios", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*not run: the stack processes does not support disconnect driver*"])
    run(pytester, "scenarios", "--harness-stack", "containers").assert_outcomes(passed=1)


def test_options_win_over_environment_over_ini(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    project("scenarios/a.yaml")
    pytester.makeini("[pytest]\nharness_seed = 1\nharness_stack = containers\nharness_reports = out\n")
    run(pytester, "scenarios").assert_outcomes(passed=1)
    monkeypatch.setenv("HARNESS_SEED", "2")
    run(pytester, "scenarios").assert_outcomes(passed=1)
    run(pytester, "scenarios", "--harness-seed", "3", "--harness-stack", "processes").assert_outcomes(passed=1)
    assert world.asked == [("a", 1), ("a", 2), ("a", 3)]
    assert world.opened == ["containers", "containers", "processes"]
    assert (pytester.path / "out/latest/index.html").is_file()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--harness-seed=x", "*--harness-seed must be a whole number, not 'x'"),
        ("--harness-keep=some", "*--harness-keep must be one of all, failed, none, not 'some'"),
        (
            "--harness-spark=2.4",
            "*--harness-spark: asked for Spark 2.4; there are 3.5 (3.5.7), 4.0 (*. Take one of them",
        ),
    ],
)
def test_a_wrong_option_is_a_usage_error(pytester: pytest.Pytester, option: str, said: str) -> None:
    result = run(pytester, option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


@pytest.mark.parametrize(("keep", "left"), [("all", ["bad", "good"]), ("failed", ["bad"]), ("none", [])])
def test_run_folders_are_kept_as_asked(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World, keep: str, left: list[str]
) -> None:
    project("scenarios/good.yaml")
    project("scenarios/bad.yaml")
    world.answers["bad"] = sample.verdict()
    run(pytester, "scenarios", "--harness-keep", keep).assert_outcomes(passed=1, failed=1)
    reports = pytester.path / "reports"
    assert sorted(path.parent.parent.name for path in reports.glob("*/2*/run.json")) == left
    index = (reports / "latest/index.html").read_text()
    assert len({*re.findall(r'<a [^>]*href="([^"]+)"', index)}) == len(left)
    assert len(json.loads((reports / "latest/summary.json").read_text())["runs"]) == 2
    (line,) = map(json.loads, (reports / "latest/trend.jsonl").read_text().splitlines())
    assert (line["plans"], line["verdicts"], line["exit"]) == (2, {"held": 1, "violated": 1}, 1)


def test_a_spark_version_is_that_of_the_scenarios_that_name_none(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/a.yaml")
    own = project("scenarios/b.yaml")
    own.write_text(own.read_text().replace("pipeline: ", "pipeline:\n  spark: 3.5\n  entry: "))
    project("scenarios/c.yaml")
    (pytester.path / "pipelines" / "append.py").write_text("print()\n")
    run(pytester, "scenarios").assert_outcomes(passed=3)
    run(pytester, "scenarios", "--harness-spark", "3.5.7").assert_outcomes(passed=3)
    assert world.sparks == ["", "3.5", "", "3.5", "3.5", "3.5"]
    (pytester.path / "pipelines" / "append.py").write_text("spark.dataSource.register(Own)\n")
    own.unlink()
    run(pytester, "scenarios", "--harness-spark", "3.5").assert_outcomes(skipped=2)


def test_junit_knows_seed_verdict_folder_and_faults(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/a.yaml")
    run(pytester, "scenarios", "--junitxml=junit.xml").assert_outcomes(passed=1)
    tree = ElementTree.parse(pytester.path / "junit.xml")
    found = {each.get("name"): each.get("value") for each in tree.iter("property")}
    assert found["seed"] == "7"
    assert found["verdict"] == "held"
    assert found["exit_code"] == "0"
    assert found["faults"] == "kill driver (sink-committed): injected"
    assert found["crash_points"] == "postgres payments: sink-committed (repetition; loss)"
    assert (pytester.path / str(found["run_folder"]) / "verdict.json").is_file()


def test_junit_and_the_end_have_our_word_and_code_and_pytest_has_its_own(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/a.yaml")
    project("scenarios/b.yaml")
    world.answers["a"] = sample.verdict(word=Word.UNTESTED, findings=(), reasons=("the reason",))
    world.answers["b"] = SetupError("the pipeline committed no batch")
    result = run(pytester, "scenarios", "--junitxml=junit.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["again:  onceproof run scenarios/b.yaml --seed 0", "exit code of onceproof: 4 *"])
    tree = ElementTree.parse(pytester.path / "junit.xml")
    found = {
        case.get("name"): {each.get("name"): each.get("value") for each in case.iter("property")}
        for case in tree.iter("testcase")
    }
    assert [(found[name]["verdict"], found[name]["exit_code"]) for name in "ab"] == [("untested", "3"), ("error", "4")]
    texts = [str(each.text) for each in tree.iter("failure")]
    assert [text.splitlines()[-1].partition(" scenarios")[0][:27] for text in texts] == [
        "again:  onceproof replay re",
        "again:  onceproof run",
    ]


def test_github_is_told_once_and_on_the_scenarios_own_line(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    project("scenarios/bad.yaml", name="an append")
    project("scenarios/good.yaml")
    world.answers["an append"] = sample.verdict(reasons=("the end of driver-1.log:\n::warning::x\n##[error]y",))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "step.md"))
    result = run(pytester, "scenarios", "-v")
    (line,) = [each for each in result.stdout.lines if each.lstrip().startswith("::") or "\n##[" in f"\n{each}"]
    result.stdout.fnmatch_lines(["*: :warning: :x", "*## [[]error]y"])
    assert line.startswith("::error file=scenarios/bad.yaml,line=10,title=VIOLATED (1 duplicated%2C 1 corrupted%2C")
    assert line.partition("%0Aagain:  ")[2].startswith("onceproof replay reports/an-append/")
    text = (pytester.path / "step.md").read_text()
    assert text.count("## Onceproof\n") == 1
    assert "2 runs: 1 as expected, 1 not (1 violated); exit code 1" in text


APART = """\
import sys
sys.path.insert(0, {house!r})
import pytest
from harness.run import loop
from tests import sample_runs as sample

def run(scenario, stack, *, reports, seed, listener=None):
    folder = sample.stored(reports, sample.verdict(), asked=scenario, run_id=scenario.name)
    return loop.Result(verdict=sample.verdict(), folder=folder.path, seconds=1.5)

loop.run = run

@pytest.fixture(scope="session")
def stack():
    return None
"""


@pytest.mark.subprocess
def test_workers_of_xdist_leave_telling_to_their_controller(
    pytester: pytest.Pytester, project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        project(f"scenarios/{name}.yaml")
    project("wrong/scenarios/c.yaml", text=FILE.format(name="x", tags="").replace("do: kill driver", "do: kil"))
    pytester.makeconftest(APART.format(house=str(Path(__file__).parents[1])))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "step.md"))
    words = (sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider")
    result = pytester.run(*words, "scenarios", timeout=PROCESS_S)
    result.assert_outcomes(failed=2)
    told = sorted(line.partition(",")[0] for line in result.stdout.lines if line.startswith("::error"))
    assert told == ["::error file=scenarios/a.yaml", "::error file=scenarios/b.yaml"]
    assert (pytester.path / "step.md").read_text().count("## Onceproof\n") == 1
    result = pytester.run(*words, "wrong", timeout=PROCESS_S)
    told = [line.partition("::")[2].partition("::")[0] for line in result.stdout.lines if line.startswith("::error")]
    # The folder above has no program either.
    assert told == [f"error file=wrong/scenarios/c.yaml,line={line}" for line in ("2,col=11", "9,col=51")]


def test_github_is_shown_the_mistakes_of_collection(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    project("scenarios/wrong.yaml", text=FILE.format(name="x", tags="").replace("do: kill driver", "do: kil driver"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path))
    result = run(pytester, "scenarios")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    (line,) = [each for each in result.stdout.lines if each.startswith("::error")]
    assert line.startswith("::error file=scenarios/wrong.yaml,line=9,col=")


def test_shards_have_each_scenario_once_and_every_other_test(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    for name in "abc":
        project(f"scenarios/{name}.yaml")
    pytester.makepyfile("def test_theirs(): pass")
    run(pytester, "--harness-shard", "1/2").assert_outcomes(passed=3, deselected=1)
    run(pytester, "--harness-shard", "2/2").assert_outcomes(passed=2, deselected=2)
    assert [name for name, _ in world.asked] == ["a", "c", "b"]
    result = run(pytester, "--harness-shard", "3/2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--harness-shard must be i/n, the i-th of n parts, such as 1/3, not '3/2'"])


def test_a_test_of_the_users_own_runs_scenarios(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("mine/a.yaml")
    world.answers["a"] = sample.verdict()
    pytester.makepyfile(
        """
        def test_mine(run_scenario, stack):
            result = run_scenario("mine/a.yaml", seed=5)
            assert result.verdict.word == "violated"
            assert result.folder.is_dir()

        def test_wrong(run_scenario):
            run_scenario("mine/none.yaml")
        """
    )
    result = run(pytester, "test_a_test_of_the_users_own_runs_scenarios.py")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*none.yaml*", "!!  violated* a*"])
    assert world.asked == [("a", 5)]


def test_an_assertion_that_fails_shows_what_each_run_says(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("mine/a.yaml")
    world.answers["a"] = Verdict(
        word=Word.UNTESTED, as_expected=False, expected="held", reasons=("step 1 struck nothing",)
    )
    pytester.makepyfile("def test_mine(run_scenario): assert run_scenario('mine/a.yaml').verdict.word == 'held'")
    result = run(pytester, "test_an_assertion_that_fails_shows_what_each_run_says.py")
    result.stdout.fnmatch_lines(["*- Onceproof -*", "UNTESTED, expected held: a", "*because: step 1 struck nothing"])


def test_a_user_may_bring_a_stack_of_their_own(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/a.yaml")
    pytester.makeconftest(
        """
        import pytest

        class Theirs:
            name = "theirs"

        @pytest.fixture(scope="session")
        def stack():
            return Theirs()
        """
    )
    run(pytester, "scenarios").assert_outcomes(passed=1)
    assert (world.opened, world.stacks) == ([], ["theirs"])


def test_a_disk_that_refuses_the_summary_does_not_change_the_verdicts(
    pytester: pytest.Pytester, project: Callable[..., Path], world: World
) -> None:
    project("scenarios/a.yaml")
    (pytester.path / "reports" / "latest" / "summary.json").mkdir(parents=True)
    result = run(pytester, "scenarios")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["no summary: could not write: *summary.json*"])


FOREIGN = {
    "config.yaml": "pipeline: x\nschedule: daily\n",
    "scenarios/behave.yaml": "name: x\ngiven: y\n",
    "scenarios/evals.yaml": "input: x\nverdict: y\n",
    "nested.yaml": "x:\n  pipeline: a\n  verdict: b\n",
    "text.yaml": "# pipeline: a\n# verdict: b\n",
    "docker-compose.yaml": "services: {}\n",
    "scenarios/list.yaml": "- pipeline: a\n- verdict: b\n",
    "scenarios/only.yaml": "pipeline: build\nstages: [a]\n",
    "empty.yaml": "",
    "scenarios/a.json": '{"pipeline": 1, "verdict": 2}',
}


def test_other_peoples_files_are_left_alone(pytester: pytest.Pytester, project: Callable[..., Path]) -> None:
    for path, text in FOREIGN.items():
        project(path, text=text or "\n")
    (pytester.path / "binary.yaml").write_bytes(bytes(range(256)))
    pytester.makepyfile("def test_theirs(): pass")
    result = run(pytester)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*onceproof *:*")
    result.stdout.no_fnmatch_line("*Onceproof*")
    assert not (pytester.path / "reports").exists()


@pytest.mark.parametrize(
    ("text", "at_home", "answer"),
    [
        ("pipeline: a\nverdict: held\n", False, (True, False)),
        ("pipeline: a\nexpect: held\n", False, (True, False)),
        ("pipeline: a\r\nverdict: held\r\n", False, (True, False)),
        ("\ufeffpipeline: a\nverdict: held\n", False, (True, False)),
        ("pipeline:\n  entry: a\nschedule:\n  - {}\n", True, (True, False)),
        ("pipeline:\n  entry: a\nschedule:\n  - {}\n", False, (False, False)),
        ("# yaml-language-server: $schema=../scenario.schema.json\nnmae: x\n", False, (True, False)),
        ("pipelin: a\nverdict: held\nschedule: []\nsink: []\n", True, (False, True)),
        ("pipelin: a\nverdict: held\nschedule: []\nsink: []\n", False, (False, False)),
    ],
)
def test_which_files_are_scenarios(tmp_path: Path, text: str, at_home: bool, answer: tuple[bool, bool]) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(text.encode())
    assert recognise(file, at_home=at_home) == answer


def test_a_file_that_cannot_be_read_is_nobodys(tmp_path: Path) -> None:
    assert recognise(tmp_path / "none.yaml", at_home=True) == (False, False)


def test_a_near_miss_is_named(pytester: pytest.Pytester, project: Callable[..., Path]) -> None:
    project("scenarios/good.yaml")
    project("scenarios/near.yaml", text=FILE.format(name="x", tags="").replace("pipeline:", "pipelin:"))
    result = run(pytester, "scenarios")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["onceproof: passed over scenarios/near.yaml: it has no `pipeline:`"])


def test_in_a_configured_folder_every_file_is_a_scenario(
    pytester: pytest.Pytester, project: Callable[..., Path]
) -> None:
    pytester.makeini("[pytest]\nharness_scenarios = chaos\n")
    project("chaos/near.yaml", text="nmae: x\n")
    result = run(pytester, "chaos")
    result.stdout.fnmatch_lines(["*chaos/near.yaml:1:*"])


@pytest.mark.subprocess
def test_the_plugin_is_light() -> None:
    code = (
        "import pytest, sys; before = set(sys.modules); import harness.plugin;print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PROCESS_S)
    ours = {name for name in done.stdout.split() if name.split(".")[0] == "harness"}
    assert ours == {"harness", "harness.errors", "harness.stacks", "harness.stacks.addresses"} | {
        f"harness.plugin{part}" for part in ("", ".files", ".runs", ".settings", ".suite")
    }
    assert {name.split(".")[0] for name in done.stdout.split()} == {"harness"}
