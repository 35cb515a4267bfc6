"""A night: what is played in which order, run again, kept, resumed; and what it says at its end. Nothing is started."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Interrupted, UsageError
from harness.load import load, load_all
from harness.nightly.bound import bounds, told
from harness.nightly.draw import Half, plans, targets
from harness.nightly.keep import HELD_KEPT, Kept, thinned
from harness.nightly.night import AGAIN, Entry, Night, entries, reproduced
from harness.nightly.state import Head, Line, State
from harness.report.stakes import Struck, struck
from harness.report.summary import Run
from harness.scenario import Known, Scenario, Verdict, Word
from harness.stack import MEANS
from tests import sample_runs as sample

HOUSE = Path(__file__).parents[1]
FILE = HOUSE / "scenarios" / "proving" / "upsert_before_offset_commit.yaml"
HEAD = Head(seed=7, shard=1, shards=1, digest="d")
TODAY = date(2026, 11, 26)
RUN_S = 10.0


@pytest.fixture(scope="module")
def base() -> Scenario:
    return load(FILE)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for a scenario, in a project with our pipelines."""
    root = tmp_path_factory.mktemp("copied")
    shutil.copytree(HOUSE / "pipelines", root / "pipelines")
    (root / "scenarios").mkdir()
    return root / "scenarios" / "it.yaml"


def held() -> Verdict:
    return sample.held()


def violated() -> Verdict:
    return replace(sample.verdict(), word=Word.VIOLATED, as_expected=False)


def listed(base: Scenario, *, known: tuple[Scenario, ...] = (), most: int = 10) -> list[Entry]:
    drawn = plans(targets([base], MEANS["processes"]), means=MEANS["processes"], seed=7)
    return list(islice(entries(known, [base], drawn, shard=1, shards=1), most))


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

    def night(self, folder: Path, for_s: float = 75.0) -> Night:
        state = State.opened(folder / "night.jsonl", HEAD)
        return Night(state, for_s, self.run, folder / "failing", TODAY, clock=lambda: self.now)


def test_the_corpus_comes_first_then_what_files_say_then_what_is_drawn(base: Scenario) -> None:
    known = replace(base, name="known")
    found = listed(base, known=(known,))
    assert [each.plan for each in found[:4]] == ["known 0", "own 0", "drawn 0", "drawn 1"]
    assert [each.half for each in found[:4]] == ["", "", Half.UNIFORM, Half.WEIGHTED]
    assert found[0].scenario == known and found[1].scenario == base


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 4))
def test_shards_share_the_files_out(known: int, own: int, shards: int) -> None:
    bare = load(FILE)
    files = [replace(bare, name=str(number)) for number in range(10)]
    found = [
        each.plan
        for shard in range(1, shards + 1)
        for each in entries(files[:known], files[:own], (), shard=shard, shards=shards)
    ]
    assert sorted(found) == sorted([f"known {n}" for n in range(known)] + [f"own {n}" for n in range(own)])


def test_it_begins_no_run_that_would_not_fit(base: Scenario, tmp_path: Path) -> None:
    world = World()
    night = world.night(tmp_path)
    night.play(listed(base))
    assert len(world.ran) == 7
    assert world.now <= night.for_s
    assert night.code() == 0


def test_a_killed_night_goes_on_with_the_same_plans_and_the_time_that_is_left(base: Scenario, tmp_path: Path) -> None:
    whole, first = World(), World(dies_after=3)
    whole.night(tmp_path / "whole").play(listed(base))
    with pytest.raises(Interrupted):
        first.night(tmp_path / "cut").play(listed(base))
    path = tmp_path / "cut" / "night.jsonl"
    with path.open("a") as torn:
        torn.write('{"run": {"plan": "dra')
    second = World()
    second.night(tmp_path / "cut").play(listed(base))
    assert first.ran + second.ran == whole.ran
    with pytest.raises(UsageError, match="is over"):
        State.opened(path, HEAD)


def test_another_nights_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "night.jsonl"
    State.opened(path, replace(HEAD, struck=(("a", "b", "c", 2),)))
    # What earlier nights struck is as it was told when the night began.
    assert State.opened(path, HEAD).head.struck == (("a", "b", "c", 2),)
    for other in (replace(HEAD, seed=8), replace(HEAD, digest="e"), replace(HEAD, shards=2)):
        with pytest.raises(UsageError, match="another seed"):
            State.opened(path, other)
    path.write_text("{}\n")
    with pytest.raises(UsageError, match="damaged"):
        State.opened(path, HEAD)


def test_a_plan_that_fails_is_run_again_at_once_and_written_as_a_scenario(
    base: Scenario, copied: Path, tmp_path: Path
) -> None:
    plan = listed(base)[1].scenario
    world = World(lambda scenario: violated() if scenario.name == plan.name else held())
    night = world.night(tmp_path)
    night.play(listed(base))
    assert world.ran[1 : 2 + AGAIN] == [plan.name] * (1 + AGAIN)
    assert reproduced(night.state.runs("drawn 0")) == (AGAIN, AGAIN)
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
    night = world.night(tmp_path, for_s=10 * RUN_S + 1)
    night.play(listed(base, most=5))
    assert [len(night.state.runs(f"drawn {number}")) for number in range(4)] == [1 + AGAIN, 1, 1, 1]


@pytest.mark.parametrize(("until", "code"), [("2026-11-26", 0), ("2026-11-25", 1)])
def test_a_known_failure_is_shown_apart_until_its_day(base: Scenario, tmp_path: Path, until: str, code: int) -> None:
    known = replace(base, name="known", known=Known(issue="https://example.org/7", until=until))
    world = World(lambda scenario: violated() if scenario.name == "known" else held())
    night = world.night(tmp_path)
    night.play(listed(base, known=(known,)))
    assert night.code() == code
    assert ("1 known issues failed" in night.summary()) == (code == 0)


def test_an_error_is_no_known_failure(base: Scenario, tmp_path: Path) -> None:
    known = replace(base, name="known", known=Known(issue="https://example.org/7", until="2026-11-26"))
    broken = replace(sample.held(), word=Word.ERROR, as_expected=False)
    night = World(lambda scenario: broken if scenario.name == "known" else held()).night(tmp_path)
    night.play(listed(base, known=(known,)))
    assert night.code() == 4


@pytest.mark.parametrize(
    ("word", "code"), [(Word.HELD, 0), (Word.UNKNOWN, 3), (Word.VIOLATED, 1), (Word.ERROR, 4), (Word.VOID, 0)]
)
def test_the_exit_code_is_the_worst(base: Scenario, tmp_path: Path, word: Word, code: int) -> None:
    one = listed(base)[3].scenario.name
    other = replace(sample.held(), word=word, as_expected=word is Word.HELD)
    night = World(lambda scenario: other if scenario.name == one else held()).night(tmp_path)
    night.play(listed(base))
    assert night.code() == code


def test_a_night_that_hit_nothing_is_not_green(base: Scenario, tmp_path: Path) -> None:
    void = replace(sample.held(), word=Word.VOID, as_expected=True, stakes=())
    night = World(lambda scenario: void).night(tmp_path)
    night.play(listed(base))
    assert night.code() == 3


def line(verdict: str = "held", **changes: object) -> Line:
    given = {"plan": "drawn 0", "name": "n", "target": "t", "verdict": verdict, "failed": False, "half": "uniform"}
    return Line(**{**given, "struck": (("sink", "point", "fault"),), **changes})  # type: ignore[arg-type]


def test_only_consequential_held_runs_of_the_uniform_half_bound() -> None:
    nothing = [line(half="weighted"), line(half=""), line(again=1), line(struck=())]
    assert bounds(nothing) == []
    assert "bounds nothing" in told([])[0]
    (found,) = bounds([line() for _ in range(12)] + nothing)
    assert (found.runs, found.held) == (12, 12)
    assert "at 95 % fewer than 3 in 12 such hits break it" in str(found)
    (few,) = bounds([line()] * 3)
    assert "too few" in str(few)


@pytest.mark.parametrize("word", ["violated", "unknown", "error", "void"])
def test_one_run_that_did_not_hold_takes_the_bound_away(word: str) -> None:
    (found,) = bounds([line()] * 50 + [line(word)])
    assert str(found).endswith("50 of 51 held, so there is no bound")


def test_a_run_is_in_the_cells_that_count_alone() -> None:
    verdict = sample.held()
    counting = [stake for stake in verdict.stakes if stake.counts]
    assert counting and struck(verdict)
    assert all(isinstance(each, Struck) for each in struck(verdict))
    assert struck(replace(verdict, stakes=tuple(replace(stake, shown=False) for stake in verdict.stakes))) == []
    assert struck(replace(verdict, steps=tuple(replace(step, hit=False) for step in verdict.steps))) == []


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
