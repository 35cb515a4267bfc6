"""`onceproof nightly` from the command line to the files that it leaves, with runs that are said instead of played."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import main
from harness.errors import Interrupted, StackError
from harness.load import load
from harness.nightly import command, kept
from harness.nightly.night import Night
from harness.report.many.gather import gather
from harness.report.summary import Run
from harness.run_folder import digests
from harness.run_folder.store import RunFolder
from harness.scenario import Scenario, Word
from tests import sample_runs as sample

SCENARIO = Path(__file__).parents[1] / "scenarios" / "proving" / "upsert_before_offset_commit.yaml"
MOST = 6


class Plays:
    """Says that each run held, but those of which the number is in `violated`; ends the night after the sixth."""

    def __init__(self, violated: frozenset[int] = frozenset()) -> None:
        self.violated, self.played, self.dies = violated, list[Scenario](), dict[int, BaseException]()
        self.stacks, self.untested, self.unknown = 0, frozenset[int](), frozenset[int]()

    def __call__(self, scenario: Scenario, stack: Any, *, options: Any, listener: Any) -> Run:
        self.played.append(scenario)
        number = len(self.played)
        if number in self.dies:
            raise self.dies[number]
        folder = RunFolder.create(options.reports, scenario.name, f"r{number}")
        folder.save(0, run={"scenario": scenario.name})
        verdict = sample.held()
        if number in self.violated:
            verdict = replace(sample.verdict(), as_expected=False)
        if number in self.untested:
            verdict = replace(verdict, word=Word.UNTESTED, as_expected=False, exposures=())
        if number in self.unknown:
            verdict = replace(verdict, word=Word.INCONCLUSIVE, as_expected=False)
        folder.save(2, verdict=verdict)
        digests.write(folder.path)
        return Run(scenario=scenario.name, verdict=verdict, folder=folder.path)


@pytest.fixture
def plays(monkeypatch: pytest.MonkeyPatch) -> Plays:
    made = Plays()

    @contextmanager
    def up(stack: Any) -> Iterator[Any]:
        made.stacks += 1
        yield stack

    def few(self: Night) -> bool:
        return len(self.state.lines) < MOST

    monkeypatch.setattr(command, "up", up)
    monkeypatch.setattr(command, "stack_of", lambda options, work: SimpleNamespace(health=lambda: None))
    monkeypatch.setattr(command, "one", made)
    monkeypatch.setattr(Night, "fits", few)
    return made


def nightly(reports: Path, *words: str, path: Path = SCENARIO) -> Result:
    given = [
        "nightly",
        str(path),
        "--for",
        "2h",
        "--reports",
        str(reports),
        "--corpus",
        str(reports / "none"),
        "--jobs",
        "1",
    ]
    return CliRunner().invoke(main, [*given, "--corpus", str(reports / "none"), *words])


def test_a_held_night_says_one_line_and_its_bounds(plays: Plays, tmp_path: Path) -> None:
    done = nightly(tmp_path, "--seed", "7")
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 1
    assert done.stdout.startswith("nightly seed 7 shard 1/1: 6 plans in 0 min: 6 held")
    assert "nothing is said of it" in done.stderr
    (trend,) = map(json.loads, (tmp_path / "trend.jsonl").read_text().splitlines())
    assert (trend["seed"], trend["plans"], trend["verdicts"], trend["exit"]) == (7, 6, {"held": 6}, 0)
    assert trend["cells"] and trend["uniform"]


def shown(reports: Path) -> list[tuple[str, str]]:
    """The nights on the page of a night: how many runs, and how many of them not as expected."""
    trend = (reports / "latest" / "index.html").read_text().split('<section id="trend">')[1]
    return re.findall(r'<td>night</td><td class="number">(\d+)</td><td class="number">(\d+)</td>', trend)


def test_the_page_of_a_night_has_this_night_and_the_earlier_ones(plays: Plays, tmp_path: Path) -> None:
    plays.dies = {4: Interrupted("interrupted by SIGTERM")}
    assert nightly(tmp_path, "--seed", "7").exit_code == 130
    assert shown(tmp_path) == [("3", "0")]
    # It goes on, and is still one night.
    assert nightly(tmp_path, "--seed", "7").exit_code == 0
    assert shown(tmp_path) == [("6", "0")]
    plays.violated = frozenset({8})
    assert nightly(tmp_path, "--seed", "8").exit_code == 1
    assert sorted(shown(tmp_path)) == [("4", "1"), ("6", "0")]


def test_the_page_has_every_run_of_the_night_also_those_whose_folders_are_gone(
    plays: Plays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "HELD_KEPT", 2)
    assert nightly(tmp_path, "--seed", "7").exit_code == 0
    assert len([*tmp_path.glob("night-7-*/2*/run.json")]) == 2
    html = (tmp_path / "latest" / "index.html").read_text()
    assert f"<h1>{MOST} runs: {MOST} as expected</h1>" in html
    assert "The folders of 4 runs of these were removed" in html
    assert f"struck: {MOST} held" in html
    assert "upsert.py" in html.split('<section id="matrix">')[1]


def sections(reports: Path) -> dict[str, str]:
    """The sections of the page by their ids."""
    html = (reports / "latest" / "index.html").read_text()
    return dict(re.findall(r'<section id="(\w+)">(.*?)</section>', html, re.DOTALL))


def test_known_failures_are_shown_apart(plays: Plays, tmp_path: Path) -> None:
    issue = "https://example.org/issues/7"
    known = tmp_path / "scenarios" / "known.yaml"
    known.parent.mkdir()
    known.write_text(SCENARIO.read_text() + f"known: {{issue: '{issue}', until: 9999-12-31}}\n")
    shutil.copytree(SCENARIO.parents[2] / "pipelines" / "transactions", tmp_path / "pipelines" / "transactions")
    plays.violated = frozenset({1})
    done = nightly(tmp_path, "--seed", "7", path=known)
    assert done.exit_code == 0, done.stderr
    found = sections(tmp_path)
    assert issue in found["known"] and "wrong" not in found
    assert "not as expected" not in found["matrix"]
    html = (tmp_path / "latest" / "index.html").read_text()
    assert f"<h1>{MOST} runs: {MOST - 1} as expected, 1 known to fail</h1>" in html


def test_a_drawn_plan_that_struck_nothing_is_no_wrong_run(plays: Plays, tmp_path: Path) -> None:
    plays.untested = frozenset({2})
    nightly(tmp_path, "--seed", "7")
    html = (tmp_path / "latest" / "index.html").read_text()
    assert f"<h1>{MOST} runs: {MOST - 1} as expected, 1 drawn and untested</h1>" in html
    found = sections(tmp_path)
    assert "As expected" not in found["blank"] and not {"mute", "wrong"} & found.keys()
    assert shown(tmp_path) == [(str(MOST), "0")]


def test_the_page_its_trend_and_the_line_for_a_chat_count_the_same_plans(plays: Plays, tmp_path: Path) -> None:
    plays.unknown, plays.violated = frozenset({1}), frozenset({2, 3, 5})
    done = nightly(tmp_path, "--seed", "7")
    html = (tmp_path / "latest" / "index.html").read_text()
    # The second plan is played twice more; the third has the same failure.
    assert "<h1>4 runs: 1 as expected, 3 not (1 inconclusive, 2 violated), and 2 runs again</h1>" in html
    assert shown(tmp_path) == [("4", "3")]
    assert done.stdout.startswith("nightly seed 7 shard 1/1: 4 plans in 0 min: 1 held, 1 inconclusive, 2 violated; ")
    assert "inconclusive" in done.stdout.split("; ")[1] and "plan drawn 0" in done.stdout
    assert done.exit_code == 1


def test_an_unknown_drawn_plan_is_named_where_it_decides_the_exit_code(plays: Plays, tmp_path: Path) -> None:
    plays.unknown = frozenset({2})
    done = nightly(tmp_path, "--seed", "7")
    assert done.exit_code == 3
    assert "inconclusive" in done.stdout.split("; ")[1] and "plan drawn 1, not run again" in done.stdout
    assert shown(tmp_path) == [(str(MOST), "1")]


def test_the_nights_of_several_machines_make_one_page(
    plays: Plays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue = "https://example.org/issues/7"
    known = tmp_path / "scenarios" / "known.yaml"
    known.parent.mkdir()
    known.write_text(SCENARIO.read_text() + f"known: {{issue: '{issue}', until: 9999-12-31}}\n")
    shutil.copytree(SCENARIO.parents[2] / "pipelines" / "transactions", tmp_path / "pipelines" / "transactions")
    monkeypatch.setattr(kept, "HELD_KEPT", 1)
    plays.violated, plays.untested = frozenset({1}), frozenset({2, 8})
    for shard in ("1/2", "2/2"):
        assert nightly(tmp_path / shard[0], "--seed", "7", "--shard", shard, path=known).exit_code == 0
    folders = [str(tmp_path / number) for number in "12"]
    assert len([*tmp_path.glob("?/night-*/2*/run.json")]) == 3
    merged = CliRunner().invoke(main, ["report", *folders, "--out", str(tmp_path / "merged")])
    assert merged.exit_code == 0, merged.output
    html = (tmp_path / "merged" / "index.html").read_text()
    assert "<h1>12 runs: 9 as expected, 1 known to fail, 2 drawn and untested</h1>" in html
    assert issue in html.split('<section id="known">')[1].split("</section>")[0]
    assert '<section id="wrong">' not in html
    assert "The folders of 9 runs of these were removed" in html
    # Each machine's night is there once, by its own line.
    assert re.findall(r'<td>(night|suite)</td><td class="number">(\d+)</td>', html) == [("night", "6")] * 2


def test_what_a_summary_knows_of_a_run_is_no_excuse_for_another_verdict(plays: Plays, tmp_path: Path) -> None:
    plays.violated = frozenset({1})
    nightly(tmp_path, "--seed", "7")
    path = tmp_path / "latest" / "summary.json"
    said = json.loads(path.read_text())
    assert (said["what"], said["exit_code"], len(said["runs"])) == ("night", 1, MOST)
    for each in said["runs"]:
        each |= {"known": "https://example.org/7", "verdict": "error", "as_expected": False}
    path.write_text(json.dumps(said))
    # The folders say what came of the runs, and of an error nothing is known.
    assert [each.word for each in gather([tmp_path]).seen if each.wrong] == [Word.VIOLATED]
    for folder in tmp_path.glob("night-*/2*"):
        shutil.rmtree(folder)
    assert [each.word for each in gather([tmp_path]).seen if each.wrong] == [Word.ERROR] * MOST


def test_a_violated_night_fails_and_leaves_its_plan(plays: Plays, tmp_path: Path) -> None:
    plays.violated = frozenset({2, 3})
    done = nightly(tmp_path, "--seed", "7")
    assert done.exit_code == 1
    assert "plan drawn 1, reproduced 1 of 2" in done.stdout
    assert [each.name for each in (tmp_path / "failing").iterdir()]


def test_a_night_that_is_over_is_not_played_again_and_the_next_one_knows_what_was_struck(
    plays: Plays, tmp_path: Path
) -> None:
    assert nightly(tmp_path, "--seed", "7").exit_code == 0
    again = nightly(tmp_path, "--seed", "7")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "it is over" in again.stderr
    assert nightly(tmp_path, "--seed", "8").exit_code == 0
    head = json.loads((tmp_path / "night-8-1-1.jsonl").read_text().splitlines()[0])["head"]
    assert head["struck"] == json.loads((tmp_path / "trend.jsonl").read_text().splitlines()[0])["cells"]


def test_a_stack_that_dies_is_an_error_of_its_plan_and_another_comes_up(plays: Plays, tmp_path: Path) -> None:
    plays.dies = {2: StackError("kafka ended with signal 9"), 3: StackError("kafka ended with signal 9")}
    done = nightly(tmp_path, "--seed", "7")
    assert done.exit_code == 4
    assert "plan drawn 1, reproduced 1 of 2" in done.stdout
    assert plays.stacks == 3


def test_a_night_that_is_interrupted_says_so_and_goes_on(plays: Plays, tmp_path: Path) -> None:
    plays.dies = {4: Interrupted("interrupted by SIGTERM")}
    done = nightly(tmp_path, "--seed", "7")
    assert done.exit_code == 130
    assert done.stdout.endswith("3 held; cut short\n")
    # Without a seed it is the one that is not over.
    again = nightly(tmp_path)
    assert again.exit_code == 0
    assert again.stdout.startswith("nightly seed 7 shard 1/1: 6 plans")
    names = [each.name for each in plays.played]
    assert names[3] == names[4] and len({*names}) == 6
    lines = [*map(json.loads, (tmp_path / "trend.jsonl").read_text().splitlines())]
    assert [(each["plans"], each["cut"]) for each in lines] == [(3, True), (6, False)]
    third = nightly(tmp_path)
    assert third.stdout.startswith(f"nightly seed {date.today():%Y%m%d} ")
    assert nightly(tmp_path).stdout.startswith(f"nightly seed {date.today():%Y%m%d}1 ")


def test_another_stack_is_another_night(plays: Plays, tmp_path: Path) -> None:
    plays.dies = {4: Interrupted("interrupted by SIGTERM")}
    nightly(tmp_path, "--seed", "7")
    done = nightly(tmp_path, "--seed", "7", "--stack", "containers")
    assert done.exit_code == 2
    assert "were others when it began" in done.stderr


def test_a_path_that_is_written_otherwise_is_another_list(
    plays: Plays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plays.dies = {4: Interrupted("interrupted by SIGTERM")}
    nightly(tmp_path, "--seed", "7")
    root = SCENARIO.parents[2]
    monkeypatch.chdir(root)
    done = nightly(tmp_path, "--seed", "7", path=SCENARIO.relative_to(root))
    assert done.exit_code == 2
    assert "paths as written" in done.stderr
    assert len(plays.played) == 4


@pytest.mark.parametrize("changed", ["pipelines/common.py", "data/orders.jsonl"])
def test_what_a_program_imports_and_what_is_replayed_are_of_the_digest(tmp_path: Path, changed: str) -> None:
    given = {
        "pyproject.toml": "",
        "pipelines/job.py": "import common\n",
        "pipelines/common.py": "",
        "data/orders.jsonl": '{"id": 1}\n',
        "scenarios/one.yaml": "name: one\npipeline: pipelines/job.py\ninput: {replay: data/orders.jsonl}\n"
        "sink: {postgres: orders, expected: select id from ledger, key: [id]}\n",
    }
    for name, text in given.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    asked = command.NightOptions(paths=(), for_s=1.0, reports=tmp_path / "reports")
    one = load(tmp_path / "scenarios" / "one.yaml")
    before = command.digest_of(asked, [one])
    assert command.digest_of(asked, [one]) == before
    (tmp_path / changed).write_text(given[changed] + "\n")
    assert command.digest_of(asked, [one]) != before


NONSENSE = [["--shard", "3/2"], ["--shard", "0/1"], ["--for", "2"], ["--corpus", str(SCENARIO.parent)]]


@pytest.mark.parametrize("words", NONSENSE)
def test_what_makes_no_sense_is_refused(plays: Plays, tmp_path: Path, words: list[str]) -> None:
    done = nightly(tmp_path, *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    assert plays.played == []
