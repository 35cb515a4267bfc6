"""A night: what is played in which order, run again, kept, resumed; and what it says at its end. Nothing is started."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Interrupted, UsageError
from harness.load import dump, load, load_all
from harness.nightly.bound import Bound, bounds, described
from harness.nightly.draw import Half, plans, targets
from harness.nightly.kept import HELD_KEPT, Keeper, Kept, thinned
from harness.nightly.night import AGAIN, Entry, Night, entries, reproduced
from harness.nightly.possible import Target
from harness.nightly.state import Head, Line, State
from harness.nightly.trend import Trend
from harness.report.exposures import Struck, struck
from harness.report.many.hunted import Hunted
from harness.report.many.seen import EXPECTED
from harness.report.summary import Run
from harness.run_folder.store import RunFolder
from harness.scenario import Expected, Finding, Guarantee, Kind, Known, Scenario, Verdict, Word
from harness.stacks.registry import STACKS
from harness.suite.side_by_side import threads, together
from tests import sample_runs as sample

HOUSE = Path(__file__).parents[1]
FILE = HOUSE / "scenarios" / "proving" / "upsert_before_offset_commit.yaml"
HEAD = Head(seed=7, shard=1, shards=1, digest="d")
TODAY = date(2026, 11, 26)
RUN_S = 10.0


@pytest.fixture(scope="module")
def base() -> Scenario:
    return load(FILE)


def held() -> Verdict:
    return sample.held()


def violated() -> Verdict:
    return replace(sample.verdict(), word=Word.VIOLATED, as_expected=False)


def listed(*bases: Scenario, known: tuple[Scenario, ...] = (), most: int = 10) -> list[Entry]:
    found = targets(bases, STACKS["processes"].means)
    drawn = plans(found, means=STACKS["processes"].means, seed=7)
    return list(islice(entries(known, drawn, found, shard=1, shards=1), most))


class World:
    """Plays nothing: each scenario takes ten seconds, and `says` gives its verdict."""

    def __init__(self, says: Callable[[Scenario], Verdict] = lambda scenario: held(), dies_after: int = 10**6) -> None:
        self.says, self.dies_after = says, dies_after
        self.now = 0.0
        self.ran: list[str] = []

    def run(self, scenario: Scenario) -> Run:
        if len(self.ran) >= self.dies_after:
            raise Interrupted("killed")
        self.ran.append(scenario.name)
        self.now += RUN_S
        return Run(scenario=scenario.name, verdict=self.says(scenario), seconds=RUN_S)

    def night(self, folder: Path, list_: list[Entry], *bases: Scenario, for_s: float = 75.0) -> Night:
        """It has been played. Without `bases` their targets are those of the list."""
        names = {entry.target: entry.scenario for entry in list_ if entry.half}
        found = [Target(base=replace(each, path=name)) for name, each in names.items()]
        night = Night(
            state=State.opened(folder / "night.jsonl", HEAD),
            for_s=for_s,
            list_=iter(list_),
            targets=targets(bases, STACKS["processes"].means) or found,
            failing=folder / "failing",
            today=TODAY,
            clock=lambda: self.now,
        )
        night.play(self.run)
        night.state.end()
        return night


def test_the_corpus_comes_first_then_what_is_drawn(base: Scenario) -> None:
    known = replace(base, name="known")
    found = listed(base, known=(known,))
    assert [each.plan for each in found[:3]] == ["known 0", "drawn 0", "drawn 1"]
    assert [each.half for each in found[:3]] == ["", Half.UNIFORM, Half.WEIGHTED]
    assert found[0].scenario == known


@given(st.integers(0, 9), st.integers(1, 4))
def test_shards_share_the_corpus_out(known: int, shards: int) -> None:
    files = [replace(load(FILE), name=str(number)) for number in range(known)]
    found = [each.plan for shard in range(1, shards + 1) for each in entries(files, (), (), shard=shard, shards=shards)]
    assert sorted(found) == sorted(f"known {number}" for number in range(known))


def test_once_a_target_has_failed_the_others_get_its_time(base: Scenario, tmp_path: Path) -> None:
    other = replace(base, path="other.yaml", pipeline=replace(base.pipeline, args=("other",)))
    plans_ = listed(base, other, most=12)
    first = plans_[0]
    world = World(lambda scenario: violated() if scenario.name == first.scenario.name else held())
    world.night(tmp_path, plans_, for_s=1000.0)
    assert world.ran.count(first.scenario.name) == 1 + AGAIN
    assert {*world.ran} == {each.scenario.name for each in plans_ if each.target != first.target or each is first}


def test_a_night_in_which_every_target_failed_plays_on(base: Scenario, tmp_path: Path) -> None:
    plans_ = listed(base, most=6)
    world = World(lambda scenario: violated())
    world.night(tmp_path, plans_, for_s=1000.0)
    assert {*world.ran} == {each.scenario.name for each in plans_}


def test_threads_play_one_list(base: Scenario, tmp_path: Path) -> None:
    plans_ = listed(base, most=10)
    barrier = threading.Barrier(2)
    ran: list[str] = []

    def run(scenario: Scenario) -> Run:
        # Each waits for the other: were there one thread alone, the night would end here.
        barrier.wait(timeout=120)
        ran.append(scenario.name)
        return Run(scenario=scenario.name, verdict=held())

    night = Night(
        state=State.opened(tmp_path / "night.jsonl", HEAD),
        for_s=3600.0,
        list_=iter(plans_),
        targets=(),
        failing=tmp_path / "failing",
        today=TODAY,
    )
    with threads(2) as pool:
        together(dict.fromkeys("ab", partial(night.play, run)), pool)
    assert sorted(ran) == sorted(each.scenario.name for each in plans_)
    assert sorted(line.plan for line in night.state.lines) == sorted(each.plan for each in plans_)


def test_it_begins_no_run_that_would_not_fit(base: Scenario, tmp_path: Path) -> None:
    world = World()
    night = world.night(tmp_path, listed(base))
    assert len(world.ran) == 7
    assert world.now <= night.for_s
    assert night.code() == 0


def test_a_killed_night_goes_on_with_the_same_plans_and_the_time_that_is_left(base: Scenario, tmp_path: Path) -> None:
    whole, first = World(), World(dies_after=3)
    whole.night(tmp_path / "whole", listed(base))
    with pytest.raises(Interrupted):
        first.night(tmp_path / "cut", listed(base))
    path = tmp_path / "cut" / "night.jsonl"
    with path.open("a") as torn:
        torn.write('{"run": {"plan": "dra')
    second = World()
    second.night(tmp_path / "cut", listed(base))
    assert first.ran + second.ran == whole.ran
    with pytest.raises(UsageError, match="is over"):
        State.opened(path, HEAD)


def test_a_run_that_the_harness_did_not_survive_is_done_again_once_and_is_an_error_then(
    base: Scenario, tmp_path: Path
) -> None:
    plans_ = listed(base, most=3)
    path = tmp_path / "night.jsonl"
    for plan, again in (("drawn 1", 0), ("drawn 1", 0)):
        State.opened(path, HEAD).begin(plan, again)
    world = World()
    night = world.night(tmp_path, plans_, for_s=1000.0)
    assert plans_[1].scenario.name not in world.ran[:1]
    assert [each.verdict for each in night.state.runs("drawn 1")][:1] == ["error"]
    assert night.code() == 4
    other = tmp_path / "once"
    State.opened(other / "night.jsonl", HEAD).begin("drawn 1", 0)
    second = World()
    assert second.night(other, plans_, for_s=1000.0).code() == 0
    assert second.ran == [each.scenario.name for each in plans_]


def test_a_plan_that_failed_is_written_also_after_a_kill(base: Scenario, tmp_path: Path) -> None:
    plans_ = listed(base, most=2)
    world = World(lambda scenario: violated())
    world.night(tmp_path, plans_, for_s=1000.0)
    written = sorted((tmp_path / "failing").iterdir())
    (tmp_path / "night.jsonl").write_text(
        "".join(each for each in (tmp_path / "night.jsonl").read_text().splitlines(True) if "ended" not in each)
    )
    shutil.rmtree(tmp_path / "failing")
    world.night(tmp_path, plans_, for_s=1000.0)
    assert sorted((tmp_path / "failing").iterdir()) == written


def test_what_a_target_is_expected_to_do_is_found_and_no_failure(base: Scenario, tmp_path: Path) -> None:
    kinds = tuple(Kind(kind) for kind in violated().kinds())
    broken = replace(base, verdict=Expected(word=Word.VIOLATED, kinds=kinds))
    world = World(lambda scenario: violated())
    night = world.night(tmp_path, listed(broken, most=3), broken, for_s=1000.0)
    assert {line.known for line in night.state.lines} == {EXPECTED}
    assert not any(line.again for line in night.state.lines)
    assert night.code() == 0
    assert "1 of 1 pipelines that are expected to break were found" in night.summary()
    assert not (tmp_path / "failing").exists()
    other = replace(broken, verdict=Expected(word=Word.VIOLATED, kinds=(Kind.MISORDERED,)))
    assert world.night(tmp_path / "other", listed(other, most=3), other, for_s=1000.0).code() == 1


def test_a_night_says_after_how_many_plans_it_found_what_is_expected_to_break(base: Scenario, tmp_path: Path) -> None:
    kinds = tuple(Kind(kind) for kind in violated().kinds())
    expected = Expected(word=Word.VIOLATED, kinds=kinds)
    found, missed, right = (
        replace(base, path=name, pipeline=replace(base.pipeline, args=(name,)), verdict=each)
        for name, each in (("found", expected), ("missed", expected), ("right", Expected()))
    )
    list_ = listed(found, missed, right, most=12)
    third = [each for each in list_ if each.target == "found"][2]
    night = World(lambda scenario: violated() if scenario.name == third.scenario.name else held()).night(
        tmp_path, list_, found, missed, right, for_s=1000.0
    )
    plans_ = [line.plan for line in night.state.lines]
    missing = sum(line.target == "missed" for line in night.state.lines)
    assert missing and {each.pipeline: each for each in night.hunted()} == {
        "found": Hunted(pipeline="found", plan=third.plan, own=3, every=plans_.index(third.plan) + 1),
        "missed": Hunted(pipeline="missed", plan="", own=missing, every=len(plans_)),
    }
    assert "1 of 2 pipelines that are expected to break were found" in night.summary()
    Trend.read(tmp_path).add(night, TODAY, cut=False)
    rows = json.loads((tmp_path / "trend.jsonl").read_text())["hunted"]
    assert ["missed", "", missing, len(plans_)] in rows and len(rows) == 2


def test_a_known_failure_of_the_corpus_covers_the_same_one_of_its_target(base: Scenario, tmp_path: Path) -> None:
    known = replace(base, name="known", known=Known(issue="https://example.org/7", until="2026-11-26"))
    night = World(lambda scenario: violated()).night(tmp_path, listed(base, known=(known,), most=3), base, for_s=1000.0)
    assert {line.known for line in night.state.lines} == {"https://example.org/7"}
    assert night.code() == 0
    worse = replace(violated(), findings=(*violated().findings, replace(violated().findings[0], kind=Kind.MISORDERED)))
    night = World(lambda scenario: violated() if scenario.name == "known" else worse).night(
        tmp_path / "worse", listed(base, known=(known,), most=3), base, for_s=1000.0
    )
    assert night.code() == 1


def written(plan: Scenario, folder: Path, base: Scenario) -> Scenario:
    """A plan as a night wrote it and somebody committed it, with an issue."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(HOUSE / "pipelines", folder / "pipelines", dirs_exist_ok=True)
    path = folder / "regression.yaml"
    path.write_text(dump(plan))
    found = replace(load(path), known=Known(issue="https://example.org/7", until="2026-11-26"))
    # Else it would say nothing of what is drawn.
    assert found.input != base.input
    return found


@pytest.mark.parametrize("entry", ["a schedule of its own", "another input beside it"])
def test_a_file_that_a_night_wrote_covers_the_drawn_plans_of_its_pipeline(
    base: Scenario, tmp_path: Path, entry: str
) -> None:
    drawn = [each.scenario for each in listed(base, most=20)]
    plan = next(each for each in drawn if each.input.records != base.input.records and each.input.options)
    known = written(plan, tmp_path / "corpus", base)
    larger = replace(base, path="larger.yaml", input=replace(base.input, records=base.input.records * 3))
    bases = (base,) if entry == "a schedule of its own" else (larger, base)
    night = World(lambda scenario: violated()).night(
        tmp_path / "night", listed(*bases, known=(known,), most=5), *bases, for_s=1000.0
    )
    assert {line.known for line in night.state.lines} == {"https://example.org/7"}
    assert {line.target for line in night.state.lines if line.half} == {each.path for each in bases}
    assert night.code() == 0


def test_a_file_of_another_pipeline_covers_nothing(base: Scenario, tmp_path: Path) -> None:
    plan = next(each.scenario for each in listed(base, most=20) if each.scenario.input != base.input)
    known = written(replace(plan, guarantee=Guarantee.AT_LEAST_ONCE), tmp_path / "corpus", base)
    night = World(lambda scenario: violated()).night(
        tmp_path / "night", listed(base, known=(known,), most=3), base, for_s=1000.0
    )
    assert {bool(line.known) for line in night.state.lines if line.half} == {False}
    assert night.code() == 1


@pytest.mark.parametrize(
    ("word", "findings", "code"),
    [
        (Word.HELD, (), 1),  # where violated was expected
        (Word.INCONCLUSIVE, (), 3),
        (Word.INCONCLUSIVE, (sample.duplicated(),), 3),
    ],
)
@pytest.mark.parametrize("by", ["the corpus", "the target"])
def test_a_failure_of_another_word_or_without_findings_is_not_the_known_one(
    base: Scenario, tmp_path: Path, *, word: Word, findings: tuple[Finding, ...], code: int, by: str
) -> None:
    issue = Known(issue="https://example.org/7", until="2026-11-26")
    second = replace(base, name="second")
    corpus = (replace(base, name="first", known=issue), second) if by == "the corpus" else (second,)
    kinds = tuple(Kind(kind) for kind in violated().kinds())
    own = replace(base, verdict=Expected(word=Word.VIOLATED, kinds=kinds)) if by == "the target" else base
    other = replace(violated(), word=word, findings=findings)
    list_ = listed(own, known=corpus, most=2)
    night = World(lambda scenario: other if scenario.name == "second" else violated()).night(
        tmp_path, list_, own, for_s=1000.0
    )
    alike = {line.known for line in night.state.lines if line.verdict == Word.VIOLATED}
    assert alike == {issue.issue if by == "the corpus" else EXPECTED}
    assert {line.known for line in night.state.runs(f"known {len(corpus) - 1}")} == {""}
    assert night.code() == code


def test_what_the_scenarios_of_a_target_expect_is_expected_of_no_other_and_of_no_file(
    base: Scenario, tmp_path: Path
) -> None:
    kinds = tuple(Kind(kind) for kind in violated().kinds())
    broken = replace(base, path="broken.yaml", verdict=Expected(word=Word.VIOLATED, kinds=kinds))
    other = replace(base, path="other.yaml", input=replace(base.input, records=base.input.records * 3))
    world = World(lambda scenario: violated())
    night = world.night(tmp_path / "1", listed(broken, other, most=4), broken, other, for_s=1000.0)
    described = {
        each.path: {line.known for line in night.state.lines if line.target == each.path} for each in (broken, other)
    }
    assert (described, night.code()) == ({"broken.yaml": {EXPECTED}, "other.yaml": {""}}, 1)
    file = replace(base, name="a file that expects held")
    night = world.night(tmp_path / "2", listed(broken, known=(file,), most=1), broken, for_s=1000.0)
    assert {line.known for line in night.state.runs("known 0")} == {""}
    assert night.code() == 1


def test_a_cell_that_was_struck_with_nothing_exposed_is_not_struck(base: Scenario, tmp_path: Path) -> None:
    night = World().night(tmp_path / "struck", listed(base), base)
    assert sum(night.cells().values()) == len(night.state.lines)
    Trend.read(tmp_path / "struck").add(night, TODAY, cut=False)
    assert Trend.read(tmp_path / "struck").struck() == night.cells()
    idle = World(lambda scenario: replace(held(), exposures=())).night(tmp_path / "idle", listed(base), base)
    assert any(line.injected for line in idle.state.lines)
    assert not idle.cells()


def test_a_night_in_which_only_the_corpus_was_played_is_not_green(base: Scenario, tmp_path: Path) -> None:
    known = replace(base, name="known")
    assert World().night(tmp_path, listed(base, known=(known,), most=1), base).code() == 3


def test_names_give_the_one_line_no_second_one(base: Scenario, tmp_path: Path) -> None:
    hostile = replace(base, path="a\n::error::b")
    night = World(lambda scenario: violated()).night(tmp_path, listed(hostile, most=1), hostile)
    assert len(night.summary().splitlines()) == 1


def a_run(reports: Path, name: str, word: str, age_s: float) -> RunFolder:
    """A folder of 100 kB that ended so long ago; without a word it was cut off."""
    folder = RunFolder.create(reports, name, name.replace(" ", "-"))
    folder.save(0, run={"padding": "x" * 100_000})
    if word:
        (folder.path / "verdict.json").write_text(json.dumps({"word": word}))
    then = time.time() - age_s
    for path in (folder.path / "run.json", folder.path):
        os.utime(path, (then, then))
    return folder


def test_run_folders_that_no_night_names_stay(tmp_path: Path) -> None:
    own = [a_run(tmp_path, f"suite {number}", "held", 90 + number) for number in range(HELD_KEPT + 2)]
    cut = a_run(tmp_path, "suite cut", "", 80)
    nights = [a_run(tmp_path, f"night {number}", "held", 70 + number) for number in range(HELD_KEPT + 2)]
    state = State.opened(tmp_path / "night-6-1-1.jsonl", replace(HEAD, seed=6))
    for number, folder in enumerate(nights):
        state.add(line(name=f"night {number}", folder=str(folder.path)))
    (tmp_path / "night-5-1-1.jsonl").write_text("damaged\n")
    (tmp_path / "night-4-1-1.jsonl").write_text("torn")
    Keeper(tmp_path, 1, print_line=lambda words: None).kept(line())
    assert all(each.path.is_dir() for each in (*own, cut))
    assert not any(each.path.is_dir() for each in nights)


def test_folders_of_earlier_nights_count_against_the_bound_and_those_at_work_stay(tmp_path: Path) -> None:
    state = State.opened(tmp_path / "night-6-1-1.jsonl", replace(HEAD, seed=6))
    for name, word, age in (("old", "violated", 90), ("held", "held", 80), ("cut", "", 70), ("work", "", -60)):
        folder = a_run(tmp_path, name, word, age)
        # Of what was cut off, the run of the plan that came after it is named.
        state.add(line(name=name, folder=str(folder.path) if word else ""))
    mine = RunFolder.create(tmp_path, "mine", "mine")
    mine.save(0, run={})
    said: list[str] = []
    Keeper(tmp_path, 150_000, print_line=said.append).kept(line("unknown", folder=str(mine.path)))
    left = {path.parent.parent.name for path in tmp_path.glob("*/*/run.json") if not path.parent.is_symlink()}
    kept = {each.partition("-")[0] for each in left}
    assert {"old", "work", "mine"} <= kept and not {"held", "cut"} <= kept
    assert said == ["drawn 0: unknown: n"]


def test_another_nights_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "night.jsonl"
    State.opened(path, replace(HEAD, struck=(("a", "b", "c", 2),)))
    # What earlier nights struck is as it was told when the night began.
    assert State.opened(path, HEAD).head.struck == (("a", "b", "c", 2),)
    for other in (replace(HEAD, seed=8), replace(HEAD, digest="e"), replace(HEAD, shards=2)):
        with pytest.raises(UsageError, match="were others when it began"):
            State.opened(path, other)
    path.write_text("{}\n")
    with pytest.raises(UsageError, match="damaged"):
        State.opened(path, HEAD)


def test_a_plan_that_fails_is_run_again_at_once_and_written_as_a_scenario(
    base: Scenario, copied: Path, tmp_path: Path
) -> None:
    plan = listed(base)[0].scenario
    world = World(lambda scenario: violated() if scenario.name == plan.name else held())
    night = world.night(tmp_path, listed(base))
    assert world.ran[: 1 + AGAIN] == [plan.name] * (1 + AGAIN)
    assert reproduced(night.state.runs("drawn 0")) == f"reproduced {AGAIN} of {AGAIN}"
    (path,) = (tmp_path / "failing").glob("*.yaml")
    said = path.read_text()
    assert f"reproduced {AGAIN} of {AGAIN}" in said
    copied.write_text(said)
    assert replace(load(copied), path="", why="") == replace(plan, path="", why="")
    assert night.code() == 1
    assert f"plan drawn 0, reproduced {AGAIN} of {AGAIN}" in night.summary()
    assert len(night.summary().splitlines()) == 1


def test_the_same_failure_of_a_target_is_run_again_once(base: Scenario, tmp_path: Path) -> None:
    world = World(lambda scenario: held() if scenario.name == base.name else violated())
    night = world.night(tmp_path, listed(base, most=5), for_s=10 * RUN_S + 1)
    assert [len(night.state.runs(f"drawn {number}")) for number in range(4)] == [1 + AGAIN, 1, 1, 1]


@pytest.mark.parametrize(("until", "code"), [("2026-11-26", 0), ("2026-11-25", 1)])
def test_a_known_failure_is_shown_apart_until_its_day(base: Scenario, tmp_path: Path, until: str, code: int) -> None:
    known = replace(base, name="known", known=Known(issue="https://example.org/7", until=until))
    world = World(lambda scenario: violated() if scenario.name == "known" else held())
    night = world.night(tmp_path, listed(base, known=(known,)))
    assert night.code() == code
    assert ("1 known issues failed" in night.summary()) == (code == 0)


def test_an_error_is_no_known_failure(base: Scenario, tmp_path: Path) -> None:
    known = replace(base, name="known", known=Known(issue="https://example.org/7", until="2026-11-26"))
    broken = replace(sample.held(), word=Word.ERROR, as_expected=False)
    night = World(lambda scenario: broken if scenario.name == "known" else held()).night(
        tmp_path, listed(base, known=(known,))
    )
    assert night.code() == 4


@pytest.mark.parametrize(
    ("word", "code"), [(Word.HELD, 0), (Word.INCONCLUSIVE, 3), (Word.VIOLATED, 1), (Word.ERROR, 4), (Word.UNTESTED, 0)]
)
def test_the_exit_code_is_the_worst(base: Scenario, tmp_path: Path, word: Word, code: int) -> None:
    one = listed(base)[3].scenario.name
    other = replace(sample.held(), word=word, as_expected=word is Word.HELD)
    night = World(lambda scenario: other if scenario.name == one else held()).night(tmp_path, listed(base))
    assert night.code() == code


def test_a_night_that_struck_nothing_is_not_green(base: Scenario, tmp_path: Path) -> None:
    untested = replace(sample.held(), word=Word.UNTESTED, as_expected=True, exposures=())
    night = World(lambda scenario: untested).night(tmp_path, listed(base))
    assert night.code() == 3


def line(verdict: str = "held", **changes: object) -> Line:
    given = {"plan": "drawn 0", "name": "n", "target": "t", "verdict": verdict, "failed": False, "half": "uniform"}
    return Line(**{**given, "struck": (("sink", "point", "fault"),), **changes})  # type: ignore[arg-type]


CELL, WHOLE = ("t", "sink", "point", "fault"), ("t", "", "", "")


def found(*lines: Line) -> dict[tuple[str, ...], Bound]:
    return {each.cell: each for each in bounds(lines)}


def test_only_consequential_held_runs_of_the_uniform_half_bound() -> None:
    nothing = [line(half="weighted"), line(half=""), line(again=1), line(struck=()), line("untested")]
    assert bounds(nothing) == []
    assert "bounds nothing" in described([])[0]
    got = found(*[line() for _ in range(12)], *nothing)
    assert [(each.held, each.clean) for each in got.values()] == [(12, True)] * 2
    assert "at 95 % fewer than 3 in 12 such runs break it" in str(got[CELL])
    assert "too few" in str(found(*[line()] * 3)[CELL])


@pytest.mark.parametrize("half", ["uniform", "weighted", ""])
@pytest.mark.parametrize("word", ["violated", "unknown", "error"])
def test_a_run_that_did_not_hold_takes_bounds_away_whatever_drew_it(word: str, half: str) -> None:
    bad = line(word, half=half, struck=() if word == "error" else (("sink", "point", "fault"),))
    got = found(*[line()] * 50, bad)
    assert not got[CELL].clean and not got[WHOLE].clean
    assert "so there is no bound" in str(got[CELL])
    elsewhere = found(*[line()] * 50, replace(bad, target="another"))
    assert elsewhere[CELL].clean


def test_a_violation_that_no_exposure_shows_takes_the_bounds_of_its_fault_away() -> None:
    bad = line("violated", struck=(), injected=(("t", "batch-planned", "fault"),))
    assert not found(*[line()] * 50, bad)[CELL].clean
    other = replace(bad, injected=(("t", "batch-planned", "another"),))
    got = found(*[line()] * 50, other)
    assert got[CELL].clean and not got[WHOLE].clean


def test_an_untested_run_neither_gives_nor_takes_a_bound() -> None:
    got = found(*[line()] * 5, line("untested"))
    assert (got[CELL].held, got[CELL].clean) == (5, True)


def test_nights_of_one_list_add_up(base: Scenario, tmp_path: Path) -> None:
    night = World().night(tmp_path, listed(base), base)
    first = Trend.read(tmp_path).add(night, TODAY, cut=True)
    # The same night again, to its end: it counts once.
    assert Trend.read(tmp_path).add(night, TODAY, cut=False) == first
    night.state.head = replace(HEAD, seed=8)
    both = Trend.read(tmp_path).add(night, TODAY, cut=False)
    assert [each.held for each in both] == [2 * each.held for each in first]
    # Another list under a seed that was used is another night, and takes nothing away from the first one.
    night.state.head = replace(HEAD, digest="other")
    assert Trend.read(tmp_path).add(night, TODAY, cut=False) == first
    assert len(Trend.read(tmp_path).nights) == 3


def test_a_line_that_was_torn_is_cut_off_the_trend(base: Scenario, tmp_path: Path) -> None:
    night = World().night(tmp_path, listed(base), base)
    Trend.read(tmp_path).add(night, TODAY, cut=False)
    path = tmp_path / "trend.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    Trend.read(tmp_path).add(night, TODAY, cut=False)
    assert path.read_bytes() == whole * 2
    for damage in (b"\xff\n", b"{}\n", b'{"cells": [[1]]}\n'):
        path.write_bytes(whole + damage)
        with pytest.raises(UsageError, match=r"trend.jsonl:2:1: is no line of a night"):
            Trend.read(tmp_path)


def test_a_run_is_in_the_cells_that_count_alone() -> None:
    verdict = sample.held()
    counting, idle = struck(verdict.exposures, verdict.steps)
    assert counting and not idle
    assert all(isinstance(each, Struck) for each in counting)
    assert struck([replace(exposure, why="x") for exposure in verdict.exposures], verdict.steps) == ([], counting)
    assert struck(verdict.exposures, [replace(step, injected=False) for step in verdict.steps]) == ([], [])


kept = st.lists(st.tuples(st.integers(0, 50), st.booleans())).map(
    lambda pairs: [Kept(folder=str(n), size=size, failed=failed) for n, (size, failed) in enumerate(pairs)]
)


@given(kept, st.integers(0, 500))
def test_the_disk_bound_is_kept_and_failed_runs_go_last(there: list[Kept], bound: int) -> None:
    gone = thinned(there, bound)
    left = [each for each in there if each not in gone]
    failed = [each for each in there if each.failed]
    assert sum(each.size for each in left) <= bound or left == failed[-1:]
    assert sum(not each.failed for each in left) <= HELD_KEPT
    if any(each.failed for each in gone):
        assert all(each.failed for each in left)
    assert not failed or failed[-1] in left


def test_a_known_failure_of_a_file_is_read(copied: Path) -> None:
    copied.write_text(FILE.read_text() + "known: {issue: https://example.org/7, until: 2026-12-31}\n")
    assert load_all([copied])[0].known == Known(issue="https://example.org/7", until="2026-12-31")
