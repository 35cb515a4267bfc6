"""Runs side by side: how many at once, which of them alone, and what becomes of the others when one ends the suite."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.cli import main
from harness.errors import HarnessError, Interrupted, StackError, UsageError
from harness.faults import FAULTS
from harness.history import History, Line, Phase
from harness.hosts import in_parallel
from harness.machine import capacity
from harness.run.run_or_baseline import ended
from harness.scenario import Fault, Impact, Pipeline, Scenario, Step
from harness.stack import PROMISED_CORES, Means
from harness.suite import run_all, side_by_side
from harness.suite.options import Options, jobs
from harness.suite.progress import progress
from harness.suite.side_by_side import played, threads
from harness.triggers import trigger
from harness.wait import ended_by, pause, undisturbed, until
from tests.limits import PROCESS_S

HOUSE = Path(__file__).parents[1]
UPSERT = str(HOUSE / "scenarios" / "proving" / "upsert_before_offset_commit.yaml")
WITHIN_S = 120.0
GIB = 2**30
STACK_GIB, RUN_GIB = 1.0, 1.0
"""As they were measured (bench/README.md, "Memory"), and told (docs/stacks.md)."""


def scenario(name: str, *faults: str) -> Scenario:
    steps = (Step(when=trigger("elapsed", 1.0), do=Fault(kind=fault, impact=Impact.DRIVER_KILLED)) for fault in faults)
    return Scenario(name=name, pipeline=Pipeline(entry="program"), schedule=tuple(steps))


def test_so_many_are_played_at_once() -> None:
    both, done = threading.Barrier(2, timeout=WITHIN_S), []

    def play(number: int, each: Scenario) -> None:
        # Each waits for another one: with a thread less it would wait in vain.
        both.wait()
        done.append(each.name)

    with threads(2) as pool:
        played([scenario(name) for name in "abcd"], pool, play)
    assert sorted(done) == [*"abcd"]


HOLD_S = 0.5


class Alive:
    """The runs that are played at a time. Each stays until another one is there too, HOLD_S at most: two that may be
    played at once meet, however short they are."""

    def __init__(self) -> None:
        self._met = threading.Condition()
        self._here: set[int] = set()
        self.seen: list[tuple[int, set[int]]] = []

    def stay(self, number: int) -> None:
        with self._met:
            self._here.add(number)
            self._met.notify_all()
            self._met.wait_for(lambda: len(self._here) > 1, HOLD_S)
            self.seen.append((number, set(self._here)))
            self._here.remove(number)


@dataclass(frozen=True)
class Restarts:
    """A fault on a server."""

    needs = frozenset({Means.RESTART_COMPONENTS})


def test_one_that_strikes_what_others_use_is_played_alone_and_last(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {each.about.name: each for each in FAULTS} | {"kill server": Restarts()}
    monkeypatch.setattr(side_by_side, "FAULTS", known)
    alive = Alive()
    work = [scenario("b", "kill server"), scenario("a", "kill driver"), scenario("c", "kill server")]
    with threads(3) as pool:
        played(work, pool, lambda number, each: alive.stay(number))
    assert alive.seen == [(2, {2}), (1, {1}), (3, {3})]


def test_what_ends_one_ends_the_others_at_their_next_wait_and_the_rest_never_begins() -> None:
    """And each can still wait for what it cleans up."""
    begun: list[int] = []
    ended: list[str] = []
    waits = threading.Event()

    def play(number: int, each: Scenario) -> None:
        begun.append(number)
        if number == 1:
            assert waits.wait(WITHIN_S)
            raise StackError("the broker died")
        try:
            until("the end of time", lambda: waits.set(), within_s=WITHIN_S)
        except Interrupted as failure:
            words = str(failure)
            with undisturbed():
                ended.append(until("the driver to end", lambda: words, within_s=WITHIN_S))

    with pytest.raises(StackError, match="the broker died"), threads(2) as pool:
        played([scenario(str(number)) for number in range(9)], pool, play)
    assert ended == ["the suite ended: the broker died"]
    assert sorted(begun) == [1, 2]


HANGS = """
import threading
from harness.errors import Interrupted
from harness.suite import side_by_side

side_by_side.END_WITHIN_S = 0.2
begun = threading.Event()

def hangs():
    begun.set()
    threading.Event().wait(600)

try:
    with side_by_side.threads(2) as pool:
        if {interrupted}:
            pool.submit("run 1 (hangs)", hangs)
            begun.wait(120)
            raise Interrupted("by SIGTERM")
        side_by_side.together({{"run 1 (hangs)": hangs}}, pool, within_s=2.0)
except BaseException as failure:
    print(type(failure).__name__, failure)
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("interrupted", [True, False])
def test_a_run_that_hangs_is_named_and_the_process_ends(interrupted: bool) -> None:
    """Its thread never ends."""
    argv = [sys.executable, "-c", HANGS.format(interrupted=interrupted)]
    done = subprocess.run(argv, cwd=HOUSE, capture_output=True, text=True, timeout=PROCESS_S, check=True)
    kind = "Interrupted" if interrupted else "HarnessError"
    assert done.stdout.startswith(kind) and "run 1 (hangs)" in done.stdout, done.stdout


def test_a_run_that_hangs_at_the_end_of_a_suite_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "END_WITHIN_S", 0.05)
    free, began = threading.Event(), threading.Event()

    def hangs() -> None:
        began.set()
        free.wait(WITHIN_S)

    with pytest.raises(HarnessError, match=r"run 7$"), threads(1) as pool:
        pool.submit("run 7", hangs)
        pool.submit("run 8, which has not begun", lambda: None)
        assert began.wait(WITHIN_S)
    free.set()


def test_a_part_of_the_stack_that_never_starts_is_named() -> None:
    free = threading.Event()

    def hangs() -> None:
        free.wait(WITHIN_S)

    with pytest.raises(StackError, match=r"still at work: .*hangs"):
        in_parallel.together([hangs, lambda: None], within_s=2.0)
    free.set()


def test_every_wait_of_a_run_is_ended_and_none_of_its_cleaning_up(tmp_path: Path) -> None:
    over = Interrupted("the suite ended")
    closed: list[bool] = []
    history = History(tmp_path / "history.jsonl")
    run: Any = SimpleNamespace(close=lambda: closed.append(until("its driver to end", lambda: True, within_s=WITHIN_S)))
    with ended_by(lambda: over):
        for _ in range(2):
            with pytest.raises(Interrupted):
                until("anything", lambda: True, within_s=WITHIN_S)
            with pytest.raises(Interrupted):
                pause(0.0)
            ended(run, history)
    history.close()
    assert closed == [True, True]
    assert not (tmp_path / "history.jsonl").read_text()
    pause(0.0)


@pytest.mark.parametrize(
    ("runs", "cores", "gigabytes", "expected"),
    [(1, 8, 64, 1), (20, 2, 24, 2), (20, 16, 64, 8), (20, 16, 8, 7), (3, 16, 64, 3), (20, 8, 1, 1), (0, 8, 64, 1)],
)
def test_as_many_at_once_as_cores_and_memory_allow(runs: int, cores: int, gigabytes: int, expected: int) -> None:
    assert side_by_side.jobs(small(runs), cores=cores, memory=gigabytes * 2**30) == expected


def small(runs: int) -> list[Scenario]:
    """So many runs of one executor."""
    return [scenario("a")] * runs


def with_executors(*executors: int) -> list[Scenario]:
    return [Scenario(name="a", pipeline=Pipeline(entry="program", executors=each)) for each in executors]


@pytest.mark.parametrize(
    ("executors", "gigabytes", "expected"),
    [
        # The worker promises 64 cores, twice its executors to each run.
        ((8,) * 20, 1000, 4),
        ((12, 11, 10), 1000, 2),
        ((12, 11, 9), 1000, 3),
        ((2, 2, 64), 1000, 1),
        # 1 GiB for the stack, 1 for each run, 0.4 for each executor of it beyond two.
        ((4, 4), 1 + 2 * (1 + 0.8), 2),
        ((4, 4), 1 + 2 * (1 + 0.8) - 0.01, 1),
        ((2, 4), 1 + 1 + 1 + 0.8, 2),
        ((1, 2, 2), 1 + 3 * 1, 3),
    ],
)
def test_a_run_of_many_executors_takes_their_memory_and_their_cores(
    executors: tuple[int, ...], gigabytes: float, expected: int
) -> None:
    assert side_by_side.jobs(with_executors(*executors), cores=20, memory=round(gigabytes * GIB)) == expected


MANY = st.integers(1, 200)
CORES = st.integers(1, 256)
MEMORY = st.integers(0, 1024 * GIB)


@pytest.mark.parametrize("number", range(1, 5))
def test_the_next_run_at_once_begins_where_it_has_a_core_and_its_memory(number: int) -> None:
    """To the byte, and to the core."""
    enough = int((STACK_GIB + number * RUN_GIB) * GIB)
    assert side_by_side.jobs(small(20), cores=number, memory=enough) == number
    assert side_by_side.jobs(small(20), cores=20, memory=enough) == number
    assert side_by_side.jobs(small(20), cores=20, memory=enough - 1) == max(1, number - 1)
    assert side_by_side.jobs(small(20), cores=max(1, number - 1), memory=1024 * GIB) == max(1, number - 1)
    assert side_by_side.jobs(small(number), cores=20, memory=1024 * GIB) == number


@given(MANY, CORES, MEMORY)
def test_no_more_are_played_at_once_than_runs_cores_and_memory_allow(runs: int, cores: int, memory: int) -> None:
    found = side_by_side.jobs(small(runs), cores=cores, memory=memory)
    assert 1 <= found <= min(runs, cores, side_by_side.MOST)
    # One is always played: a machine too small for it says so by itself.
    assert found == 1 or (STACK_GIB + found * RUN_GIB) * GIB <= memory
    more = (STACK_GIB + (found + 1) * RUN_GIB) * GIB
    assert found == min(runs, cores, side_by_side.MOST) or more > memory, "one more would have fitted"


@given(MANY, CORES, MEMORY, st.tuples(st.integers(0, 200), st.integers(0, 256), st.integers(0, 64 * GIB)))
def test_more_of_anything_is_never_fewer_at_once(
    runs: int, cores: int, memory: int, more: tuple[int, int, int]
) -> None:
    less = side_by_side.jobs(small(runs), cores=cores, memory=memory)
    assert side_by_side.jobs(small(runs + more[0]), cores=cores + more[1], memory=memory + more[2]) >= less


@pytest.mark.parametrize("asked", ["0", "-1", "1.5", "all"])
def test_what_is_no_number_of_runs_is_refused_and_named(asked: str) -> None:
    done = CliRunner().invoke(main, ["run", UPSERT, f"--jobs={asked}"])
    assert (done.exit_code, "--jobs" in done.output, asked in done.output) == (2, True, True)


@pytest.mark.parametrize("asked", [side_by_side.MOST + 1, 99])
def test_more_runs_than_a_stack_takes_are_refused_before_it_starts(
    asked: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("harness.suite.stack_of", lambda *each: pytest.fail("a stack was asked for"))
    done = CliRunner().invoke(main, ["run", UPSERT, "--jobs", str(asked), "--reports", str(tmp_path / "reports")])
    assert done.exit_code == 2
    assert f"--jobs {asked}" in done.output and f"--jobs {side_by_side.MOST}" in done.output
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("asked", [1, 3, side_by_side.MOST])
def test_a_number_that_is_asked_for_is_taken_whatever_the_machine(asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.machine.capacity.cores", lambda: 1)
    assert jobs(Options(jobs=asked), [scenario("a")]) == asked


def test_more_runs_than_the_worker_has_cores_for_are_refused_with_their_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("harness.suite.stack_of", lambda *each: pytest.fail("a stack was asked for"))
    wide = replace(scenario("wide"), pipeline=replace(scenario("wide").pipeline, executors=6))
    for asked, why in (
        (8, f"{PROMISED_CORES} cores: --jobs 5"),
        (9, f"takes {side_by_side.MOST} runs at once: --jobs 5"),
    ):
        with pytest.raises(UsageError, match=f"--jobs {asked}; .* {why}"):
            run_all([wide] * 8, Options(jobs=asked, reports=tmp_path / "reports"))


def test_one_run_is_played_whatever_its_executors_and_the_number_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked(Exception):
        """A stack was asked for."""

    def asked(*each: object) -> None:
        raise Asked

    monkeypatch.setattr("harness.suite.stack_of", asked)
    wide = replace(scenario("wide"), pipeline=replace(scenario("wide").pipeline, executors=40))
    with pytest.raises(Asked):
        run_all([wide], Options(jobs=8))


def test_a_control_group_has_the_last_word_on_cores_and_memory(tmp_path: Path) -> None:
    here, free = capacity.cores(tmp_path), capacity.memory(tmp_path)
    assert here >= 1 and free > 0
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert (capacity.cores(tmp_path), capacity.memory(tmp_path)) == (1, 2_000_000)
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert capacity.cores(tmp_path) == here and capacity.memory(tmp_path) > 2_000_000


def test_each_control_group_above_ours_has_a_say_and_cached_files_are_no_use_of_memory(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    own = tmp_path / "cgroup"
    own.write_text("1:cpu:/elsewhere\n0::/outer/inner\n")
    (inner / "memory.max").write_text("5000000\n")
    (inner / "memory.current").write_text("4000000\n")
    (inner / "memory.stat").write_text("anon 1000000\ninactive_file 2500000\n")
    assert capacity.memory(tmp_path, own) == 3_500_000
    (inner.parent / "memory.max").write_text("3000000\n")
    (inner.parent / "memory.current").write_text("2000000\n")
    (inner.parent / "cpu.max").write_text("100000 100000\n")
    assert (capacity.cores(tmp_path, own), capacity.memory(tmp_path, own)) == (1, 1_000_000)


@pytest.mark.parametrize(("stack", "expected"), [("external", 1), ("yarn", 1), ("containers", 4), ("processes", 4)])
def test_a_cluster_that_is_not_ours_or_held_still_is_played_one_by_one(
    stack: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.machine.capacity.cores", lambda: 8)
    monkeypatch.setattr("harness.machine.capacity.memory", lambda: 64 * GIB)
    assert jobs(Options(stack=stack), small(4)) == expected


def test_each_line_says_whose_it_is() -> None:
    out = io.StringIO()
    watched = progress(out, environment={}, jobs=2)
    first = watched.started("one", number=1, total=2, steps=1)
    watched.started("two", number=2, total=2, steps=1)(Line(0, 1.0, Phase(name="feeding")))
    first(Line(0, 2.0, Phase(name="catching up")))
    lines = [re.sub(r"\[.*?\] ", "", line) for line in out.getvalue().splitlines()]
    assert lines == ["1/2 one", "2/2 two", "2/2 feeding", "1/2 catching up"]


def test_a_cluster_that_is_there_takes_one_run_at_a_time() -> None:
    words = ["--stack", "external", "--spark-master", "spark://127.0.0.1:1", "--jobs", "2"]
    there = ["--at", "kafka=127.0.0.1:1", "--at", "postgres=postgresql://a@127.0.0.1:1/b"]
    path = str(HOUSE / "scenarios" / "proving" / "upsert_before_offset_commit.yaml")
    done = CliRunner().invoke(main, ["run", path, *words, *there])
    assert done.exit_code == 2
    assert "it takes one run at a time" in done.output


# In CI: three runs at once in test_shared_stack.py.
@pytest.mark.stack
@pytest.mark.prove
def test_two_runs_at_once_are_judged_as_alone(tmp_path: Path) -> None:
    proving = HOUSE / "scenarios" / "proving"
    files = [str(proving / f"{name}.yaml") for name in ("append_before_offset_commit", "upsert_before_offset_commit")]
    argv = [sys.executable, "-m", "harness", "run", *files, "--jobs", "2", "--reports", str(tmp_path)]
    done = subprocess.run(argv, cwd=HOUSE, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    summary: dict[str, Any] = json.loads((tmp_path / "latest" / "summary.json").read_text(encoding="utf-8"))
    assert sorted(run["verdict"] for run in summary["runs"]) == ["held", "violated"]
    one, other = {path.resolve().parent for path in tmp_path.glob("*/*/verdict.json")}
    begun = [(folder / "plan.json").stat().st_mtime for folder in (one, other)]
    ended = [(folder / "history.jsonl").stat().st_mtime for folder in (one, other)]
    assert max(begun) < min(ended), "they were played one after the other"
