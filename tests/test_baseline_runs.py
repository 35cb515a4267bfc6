"""Baseline runs: what decides one, how it is kept in the run's folder and in the cache, and when there are enough."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import HarnessError, Interrupted
from harness.faults import fault
from harness.history import BaselineRun, History, Line
from harness.judge import Judged
from harness.machine import cache
from harness.run import loop
from harness.run.baseline import runs as baseline_runs
from harness.run.baseline.digest import files, inherited
from harness.run.baseline.runs import baseline_run, digest
from harness.run_folder.store import RunFolder
from harness.scenario import CrashPoint, Expected, Input, Pipeline, Scenario, Sink, Step, Word
from harness.sinks.table import SinkColumn, SinkTable, save
from harness.triggers import trigger
from tests.limits import examples
from tests.windows import TOLD, windowed

SINK = Sink(kind="postgres", target="payments", expected="select id from ledger", key=("id",))
CLAIM = Scenario(
    name="payments",
    pipeline=Pipeline(entry="jobs/p.py", args=("--topic", "{topic}"), env={"A": "1"}, conf={"spark.x": "1"}),
    setup={"postgres": "create table payments (id bigint)"},
    sinks=(SINK,),
)
STACK = {"stack": "processes", "session": "s1", "java": "17", "kafka": {"version": "4.2.0", "cluster_id": "k1"}}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a program, and a cache of its own."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    (tmp_path / "jobs" / "lib").mkdir(parents=True)
    (tmp_path / "jobs" / "p.py").write_text("import lib.a")
    (tmp_path / "jobs" / "lib" / "a.py").write_text("a = 1")
    (tmp_path / "reports" / "payments" / "run").mkdir(parents=True)
    return tmp_path


def key(root: Path, claim: Scenario = CLAIM, *, seed: int = 0, stack: dict[str, Any] = STACK) -> str:
    return digest(claim, stack, seed=seed, root=root, excluded=root / "reports")


def pipeline(**changed: Any) -> Scenario:
    return replace(CLAIM, pipeline=replace(CLAIM.pipeline, **changed))


def program(entry: str = "jobs/p.py") -> Pipeline:
    return Pipeline(entry=entry)


def sink(**changed: Any) -> Scenario:
    return replace(CLAIM, sinks=(replace(SINK, **changed),))


@pytest.mark.parametrize(
    "other",
    [
        pipeline(args=("--topic", "other")),
        pipeline(env={"A": "2"}),
        pipeline(conf={}),
        pipeline(progress="group"),
        pipeline(interval_s=10.0),
        pipeline(executors=2),
        replace(CLAIM, setup={}),
        replace(CLAIM, input=Input(records=7)),
        replace(CLAIM, quiet_period_s=3.0),
        sink(expected="select id from ledger where id > 1"),
        sink(key=()),
        sink(target="other"),
    ],
)
def test_what_decides_a_baseline_run_decides_its_digest(root: Path, other: Scenario) -> None:
    assert key(root, other) != key(root)


def test_what_a_baseline_run_has_nothing_to_do_with_does_not(root: Path) -> None:
    step = Step(when=trigger("point", CrashPoint.SINK_COMMITTED), do=fault("kill driver"))
    other = replace(CLAIM, schedule=(step,), verdict=Expected(word=Word.UNTESTED), why="because", path="elsewhere.yaml")
    again = {**STACK, "session": "s2", "kafka": {"version": "4.2.0", "cluster_id": "k2"}}
    assert key(root, other) == key(root) == key(root, stack=again)
    assert key(root, seed=1) != key(root) != key(root, stack={**STACK, "java": "21"})


def test_every_file_of_the_programs_folder_counts(root: Path) -> None:
    before = key(root)
    for name in (".git/HEAD", "__pycache__/p.pyc", "lib/__pycache__/a.pyc", ".coverage"):
        (root / "jobs" / name).parent.mkdir(exist_ok=True)
        (root / "jobs" / name).write_text("anything")
    (root / "beside.py").write_text("not in its folder")
    assert key(root) == before
    assert list(files(program(), root)) == ["lib/a.py", "p.py"]
    (root / "jobs" / "lib" / "a.py").write_text("a = 2")
    changed = key(root)
    (root / "jobs" / "lib" / "b.py").write_text("")
    more = key(root)
    (root / "jobs" / ".env").write_text("LIMIT=7")
    assert len({before, changed, more, key(root)}) == 4


def test_neither_reports_nor_an_environment_is_a_program(root: Path) -> None:
    (root / "p.py").write_text("")
    (root / "venv").mkdir()
    for name in ("venv/pyvenv.cfg", "venv/python", "reports/index.html"):
        (root / name).write_text("")
    assert list(files(program("p.py"), root, excluded=root / "reports")) == ["jobs/lib/a.py", "jobs/p.py", "p.py"]
    assert files(program("{spark.home}/examples/p.py"), root) == {}


def test_a_folder_behind_a_link_counts_and_a_circle_of_links_ends(root: Path) -> None:
    (root / "shared").mkdir()
    (root / "shared" / "x.py").write_text("x = 1")
    (root / "shared" / "up").symlink_to(root)
    (root / "jobs" / "common").symlink_to(root / "shared")
    (root / "jobs" / "gone").symlink_to(root / "nowhere")
    (root / "jobs" / "more").symlink_to(root / "shared")
    found = files(program(), root, excluded=root / "reports")
    assert {name: sum for name, sum in found.items() if sum.startswith("the same")} == {
        "common/up/jobs/": "the same as ./",
        "common/up/shared/": "the same as common/",
        "more/": "the same as common/",
    }
    before = key(root)
    (root / "shared" / "x.py").write_text("x = 2")
    assert key(root) != before


@pytest.mark.parametrize(
    "changed",
    [
        {"env": {"PYTHONPATH": "{folder}:ROOT/other:ROOT/nowhere"}},
        {"conf": {"spark.submit.pyFiles": "ROOT/a.zip,file://ROOT/other/y.py#y"}},
        {"conf": {"spark.executorEnv.PYTHONPATH": "ROOT/other"}},
        {"args": ("--topic", "{topic}", "--py-files", "ROOT/a.zip,ROOT/other")},
        {"args": ("--py-files=ROOT/other",)},
        {"args": ("--config=ROOT/other/y.py",)},
        {"args": ("ROOT/other/y.py",)},
        {"env": {"SETTINGS": "ROOT/other/y.py"}},
    ],
)
def test_what_else_the_scenario_lets_it_import_or_read_counts(root: Path, changed: dict[str, Any]) -> None:
    (root / "other").mkdir()
    (root / "other" / "y.py").write_text("y = 1")
    claim = pipeline(**_filled(changed, str(root)))
    before, plainly = key(root, claim), key(root)
    (root / "other" / "y.py").write_text("y = 2")
    assert key(root, claim) != before
    assert key(root) == plainly


def test_a_folder_that_an_argument_names_is_no_program(root: Path) -> None:
    (root / "other").mkdir()
    claim = pipeline(args=("--out", str(root / "other"), "x" * 5000, "--py-files"))
    before = key(root, claim)
    (root / "other" / "y.py").write_text("y = 1")
    assert key(root, claim) == before


def _filled(value: Any, root: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, root) for name, each in value.items()}
    return tuple(_filled(each, root) for each in value) if isinstance(value, tuple) else value.replace("ROOT", root)


def test_a_file_that_the_scenario_names_does_not_stand_for_one_of_the_programs_folder(root: Path) -> None:
    """The program may open either of them: both are called the same, by a path of their own."""
    (root / "lib").mkdir()
    (root / "lib" / "a.py").write_text("a = 0")
    (root / "orders.yaml").write_text("beside")
    (root / "jobs" / "orders.yaml").write_text("1")
    claim = pipeline(args=("--config", "orders.yaml"), env={"PYTHONPATH": "lib"})
    keys = [key(root, claim)]
    for path in ("jobs/orders.yaml", "jobs/lib/a.py", "orders.yaml", "lib/a.py"):
        (root / path).write_text("changed")
        keys.append(key(root, claim))
    assert len(set(keys)) == len(keys)


def test_what_the_driver_inherits_a_path_to_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`PYTHONPATH=src onceproof run …`: the program imports what lies there, and no scenario says so."""
    src, own = root / "src", pipeline(env={"PYTHONPATH": str(root / "nowhere")})
    for name in ("lib/orders.py", "lib/notes.txt", "lib/.git/HEAD.py", "site-packages/a.py", "reports/it.py"):
        (src / name).parent.mkdir(parents=True, exist_ok=True)
        (src / name).write_text("1")
    monkeypatch.setenv("PYTHONPATH", f"{src}:{root / 'nowhere'}:")

    def keys() -> list[str]:
        return [digest(each, STACK, seed=0, root=root, excluded=src / "reports") for each in (CLAIM, own)]

    before = keys()
    for name in ("lib/notes.txt", "lib/.git/HEAD.py", "site-packages/a.py", "reports/it.py"):
        (src / name).write_text("2")
        assert keys() == before
    (src / "lib" / "orders.py").write_text("2")
    after = keys()
    assert after[0] != before[0] and after[1] == before[1], "a scenario that sets its own has no other"


def test_a_variable_of_the_shell_counts_where_the_scenario_does_not_set_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`SWITCH=on onceproof run …`: the program reads it, and no scenario says so."""

    def keys() -> list[str]:
        return [digest(each, STACK, seed=0, root=root) for each in (CLAIM, pipeline(env={"SWITCH": "off"}))]

    monkeypatch.delenv("SWITCH", raising=False)
    before = keys()
    monkeypatch.setenv("SWITCH", "on")
    after = keys()
    assert after[0] != before[0] and after[1] == before[1]
    for name in ("PWD", "_", "SHLVL", "TERM", "SSH_CLIENT", "PYTEST_CURRENT_TEST", "ONCEPROOF_CACHE"):
        monkeypatch.setenv(name, "another one")
    assert keys() == after, "they differ from one shell to the next"


def test_sparks_configuration_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting in `spark-defaults.conf` may decide what the program does, and no scenario says so."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(root / "conf"))
    before = key(root, CLAIM)
    (root / "conf").mkdir()
    assert key(root, CLAIM) == before
    (root / "conf" / "spark-defaults.conf").write_text("spark.sql.ansi.enabled false")
    assert key(root, CLAIM) != before


def test_a_path_to_a_whole_disk_holds_nobody_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.baseline.digest.MOST", 3)
    for number in range(9):
        (root / "jobs" / f"m{number}.py").write_text("")
    assert len(inherited(program(), {"PYTHONPATH": str(root / "jobs")})) <= 3


def test_the_replayed_file_counts(root: Path) -> None:
    claim = replace(CLAIM, input=Input(workload="replay", options={"replay": "orders.csv"}))
    (root / "orders.csv").write_text("id\n1\n")
    before = key(root, claim)
    (root / "orders.csv").write_text("id\n2\n")
    assert key(root, claim) != before


class Played:
    """Stands in for a run without faults: writes what one leaves, and counts."""

    def __init__(self, **outcome: Any) -> None:
        ended = {"caught_up": True, "reasons": [], "error": None, "stalled": None, "deaths": [], "gap_s": 0.5}
        self.outcome = {**ended, **outcome}
        self.unreadable = ""
        self.times = 0
        self.portions: tuple[int, ...] = ()

    def __call__(
        self, scenario: Scenario, stack: Any, run_folder: RunFolder, *, seed: int, root: Path, portions: Any
    ) -> None:
        self.times += 1
        self.portions = portions
        (run_folder.path / "ledger").mkdir()
        (run_folder.path / "ledger" / "attempts.log").write_bytes(b"run %d" % self.times)
        run_folder.sink.mkdir()
        columns = (SinkColumn(name="id", type="bigint", family="number"),)
        table = SinkTable(
            name="postgres payments",
            kind="postgres",
            target="payments",
            columns=columns,
            unreadable=self.unreadable,
        )
        save(run_folder.path, 0, table)
        run_folder.save(1, plan={"seed": seed}, run={"outcome": self.outcome})
        run_folder.history.touch()


def made(root: Path, play: Callable[..., None], *, number: int = 1, run: str = "run", history: Any = None) -> Path:
    """A control of a run."""
    folder = root / "reports" / "payments" / run
    folder.mkdir(exist_ok=True)
    stack: Any = SimpleNamespace(describe=lambda components: STACK)
    told = {"seed": 3, "root": root, "portions": (7, 8), "history": history or History(None)}
    return played(play, CLAIM, stack, folder=folder, number=number, **told)


def played(play: Callable[..., None], *args: Any, **told: Any) -> Path:
    """A baseline run, by what stands in for a run without faults."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(baseline_runs, "without_faults", play)
        return baseline_run(*args, **told)


def run_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def test_a_baseline_run_lies_in_the_runs_folder_and_the_next_run_takes_it_from_the_cache(root: Path) -> None:
    play = Played()
    first, second = made(root, play), made(root, play, run="later")
    assert (play.times, play.portions) == (1, (7, 8))
    assert first == root / "reports" / "payments" / "run" / "baseline" / "1"
    assert [run_of(folder)["cached"] for folder in (first, second)] == [False, True]
    assert run_of(first)["digest"] == run_of(second)["digest"]
    for folder in (first, second):
        names = sorted(path.name for path in folder.iterdir())
        assert names == ["history.jsonl", "ledger", "plan.json", "run.json", "sink"]
        assert (folder / "ledger" / "attempts.log").read_bytes() == b"run 1"
        assert [path.name for path in folder.parent.iterdir()] == ["1"]
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "plan.json").stat().st_mode) == 0o600


def test_a_baseline_run_whose_kinds_are_of_others_is_never_taken_from_the_cache(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = SimpleNamespace(origin=lambda name: "theirs (theirs.sinks:KIND)")
    monkeypatch.setattr("harness.run.baseline.runs.SINKS", theirs)
    play = Played()
    assert [run_of(made(root, play, run=run))["cached"] for run in ("run", "later")] == [False, False]
    assert play.times == 2


def test_each_number_is_a_run_of_its_own(root: Path) -> None:
    play = Played()
    texts = [(made(root, play, number=k) / "ledger" / "attempts.log").read_bytes() for k in (1, 2, 3)]
    assert texts == [b"run 1", b"run 2", b"run 3"]


@pytest.mark.parametrize(
    "outcome", [{"error": "it ended with status 1"}, {"caught_up": False}, {"reasons": ["the server was at work"]}]
)
def test_one_that_came_to_no_end_is_kept_in_the_run_alone(root: Path, outcome: dict[str, Any]) -> None:
    play = Played(**outcome)
    assert run_of(made(root, play))["outcome"] == play.outcome
    assert not run_of(made(root, play, run="later"))["cached"]
    assert play.times == 2


def test_one_whose_sink_could_not_be_read_is_kept_in_the_run_alone(root: Path) -> None:
    play = Played()
    play.unreadable = "there is no table payments"
    assert [run_of(made(root, play, run=run))["cached"] for run in ("run", "later")] == [False, False]


@pytest.mark.parametrize(("times", "kept"), [(TOLD[:-1], False), (TOLD, True)])
def test_one_whose_windows_a_batch_had_yet_to_close_is_kept_in_the_run_alone(
    root: Path, times: Sequence[Sequence[int]], kept: bool
) -> None:
    """All its records are committed, and the batch that closes them takes none: the judge calls it open."""
    whole = windowed(root / "whole", times)
    folder, stack = whole.written(), SimpleNamespace(describe=lambda components: STACK)

    def play(scenario: Scenario, stack: Any, run_folder: RunFolder, **more: Any) -> None:
        shutil.copytree(folder, run_folder.path, dirs_exist_ok=True)

    for run in ("run", "later"):
        (of := root / "reports" / "payments" / run).mkdir(exist_ok=True)
        told: dict[str, Any] = {"number": 1, "seed": 3, "root": root, "portions": (), "history": History(None)}
        made = played(play, whole.scenario, stack, folder=of, **told)
    assert run_of(made)["cached"] is kept


def test_an_interrupted_one_leaves_nothing(root: Path) -> None:
    def interrupted(scenario: Scenario, stack: Any, run_folder: RunFolder, **more: Any) -> None:
        run_folder.save(0, plan={})
        raise Interrupted("Ctrl-C")

    with pytest.raises(Interrupted):
        made(root, interrupted)
    assert list((root / "reports" / "payments" / "run" / "baseline").iterdir()) == []
    assert made(root, Played()).is_dir()


def test_a_disk_that_refuses_is_one_clear_error(root: Path) -> None:
    def full(scenario: Scenario, stack: Any, run_folder: RunFolder, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(HarnessError, match="could not keep a baseline run: the disk is full"):
        made(root, full)


def test_a_cache_that_refuses_costs_a_run_and_no_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "keep", full)
    play = Played()
    for run in ("run", "later"):
        assert not run_of(made(root, play, run=run))["cached"]
    assert play.times == 2


def test_the_history_tells_of_it(root: Path) -> None:
    heard: list[Line] = []
    history = History(None)
    history.listen(heard.append)
    made(root, Played(), history=history)
    made(root, Played(), run="later", history=history)
    made(root, Played(error="no"), number=2, history=history)
    events = [line.event for line in heard]
    told = [(each.number, each.state, each.caught_up, each.failed) for each in events if isinstance(each, BaselineRun)]
    begins = (1, "begins", False, False)
    ends = [(1, "ended", True, False), (1, "cached", True, False), (2, "ended", True, True)]
    assert told == [begins, ends[0], begins, ends[1], (2, "begins", False, False), ends[2]]
    assert len(told) == len(events)


def test_as_many_are_made_as_the_judge_wants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more each time, until the verdict on those that there are wants no more."""
    made: list[int] = []
    answers = iter([Judged(cast(Any, "open"), wants) for wants in (1, 2, 0)])
    monkeypatch.setattr(loop, "judged", lambda folder: next(answers))
    monkeypatch.setattr(loop, "baseline_run", lambda scenario, stack, *, number, **told: made.append(number))
    (history := History(tmp_path / "history.jsonl")).close()
    live: Any = SimpleNamespace(
        folder=RunFolder(tmp_path), history=history, scenario=None, stack=None, seed=3, root=tmp_path
    )
    assert str(loop._verdict(live, cast(Any, SimpleNamespace(count=0)))) == "open"
    assert made == [1, 2]
    assert list(answers) == []


def left(tmp_path: Path, name: str = "left", text: bytes = b"evidence") -> Path:
    folder = tmp_path / name
    (folder / "sink").mkdir(parents=True)
    (folder / "sink" / "0.parquet").write_bytes(text)
    (folder / "run.json").write_text("{}")
    return folder


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(20))
@given(place=st.integers(0, 7), bit=st.integers(0, 7))
def test_a_flipped_bit_in_the_cache_is_no_evidence(
    place: int, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    kept, into = folder / "kept" / "1", folder / "into"
    into.mkdir()
    cache.keep(left(folder), kept)
    path = kept / "sink" / "0.parquet"
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)
    assert not cache.taken(kept, into)
    assert not kept.exists() and list(into.iterdir()) == []


def test_two_that_keep_the_same_at_once_leave_one_whole(tmp_path: Path) -> None:
    kept, gate = tmp_path / "kept" / "1", threading.Barrier(4)

    def one(place: int) -> None:
        source = left(tmp_path, f"left{place}", b"%d" % place * 8)
        gate.wait(timeout=120)
        cache.keep(source, kept)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(4)))
    (tmp_path / "into").mkdir()
    assert cache.taken(kept, tmp_path / "into")
    assert [path.name for path in kept.parent.iterdir()] == ["1"]
    assert not (tmp_path / "into" / cache.SUMS).exists()


def test_what_a_process_uses_is_not_removed(tmp_path: Path) -> None:
    times = {"used": 10, "left": 20, "new": 30}
    for name in times:
        (tmp_path / name).mkdir()
    cache.used(tmp_path / "used")
    for name, at_s in times.items():
        os.utime(tmp_path / name, (at_s, at_s))
    cache.trim(tmp_path, most=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "used"]


def test_what_is_not_there_is_used_by_nobody(tmp_path: Path) -> None:
    assert not cache.used(tmp_path / "gone").exists()


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    for name, at_s in (("a", 30), ("b", 10), ("c", 20)):
        cache.keep(left(tmp_path, f"left-{name}"), tmp_path / "kept" / name / "1")
        os.utime(tmp_path / "kept" / name, (at_s, at_s))
    (tmp_path / "into").mkdir()
    assert cache.taken(tmp_path / "kept" / "b" / "1", tmp_path / "into")
    cache.trim(tmp_path / "kept", most=2)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["a", "b"]
