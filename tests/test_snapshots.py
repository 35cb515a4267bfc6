"""Where everything stood when a fault was injected: taken before anybody goes on, and never in the way of the run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.context import BlockedWriter, CountedSink, Reached, RunContext
from harness.errors import StackError
from harness.faults import kill_executor
from harness.history import readings
from harness.run import snapshots
from harness.run.snapshots import Snapshots
from harness.scenario import CrashPoint, Restart, Sink, Victim
from harness.sinks.base import Writer
from harness.sinks.table import load, save
from harness.snapshot import Snapshot
from harness.wait import until
from tests.worlds import SINK, SLOW_S, WITHIN_S, World, at, rows, step, world

HERE = at(CrashPoint.SINK_COMMITTED, 2)


class Database:
    """What the snapshots ask of a database, answered by the fake sink. `asked` is called before each reading."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.asked: Callable[[], None] = lambda: None
        self.busy: Callable[[], str] = lambda: ""

    def keep(self, folder: Path, index: int, sink: Sink, parts: Any, *, rows_max: int, wait_ms: int) -> int:
        self.asked()
        found = rows(self.table)
        save(folder, index, found)
        return len(found.rows)


@dataclass
class Written:
    """A sink into which the `writers` write."""

    writers: list[Writer] = field(default_factory=list)
    server: str = "fake"

    def writing(self, *, wait_ms: int) -> tuple[list[Writer], list[Writer]]:
        return self.writers, self.writers


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    made = Database(tmp_path / "run" / "sink")
    monkeypatch.setattr(snapshots, "keep", made.keep)
    monkeypatch.setattr(snapshots, "opened", lambda sink, own: Written())
    monkeypatch.setattr(snapshots, "busy", lambda sink, parts: made.busy())
    return made


def snapshot(w: World, name: str) -> Snapshot:
    step, _, moment = name.partition("-")
    return readings(w.lines)[int(step), moment]


def held_rows(w: World, name: str) -> list[str]:
    table = load(w.kept / "snapshots" / name, 0)
    assert table is not None
    return [str(row[0]) for row in table.rows]


@pytest.mark.subprocess
def test_the_snapshot_of_a_kill_is_taken_before_anything_is_started_again(tmp_path: Path, database: Database) -> None:
    with world(tmp_path, snapshots=True) as w:
        seen: list[tuple[int, bool, int]] = []

        def asked() -> None:
            assert w.supervisor.driver is not None
            seen.append((w.supervisor.driver.number, w.supervisor.alive, len(w.supervisor.deaths)))

        database.asked = asked
        (outcome,) = w.play(step(HERE, "kill driver"), held=[HERE], finish=True)
        batch = 2
        assert outcome.batch == batch
        assert (outcome.injected, outcome.attempt, outcome.checkpoint) == (True, 1, "checkpoint")
        assert seen[0] == (1, False, 1), "dead, noted, and not yet started again"
        taken = snapshot(w, "1-injection")
        assert (taken.step, taken.moment, taken.attempt, taken.error, taken.sent) == (1, "injection", 1, "", {0: 7})
        (state,) = taken.queries
        assert (state.checkpoint, state.ours) == ("checkpoint", True)
        assert (max(state.offsets), max(state.commits)) == (batch, batch - 1)
        assert (state.planned, state.committed) == ({0: (batch + 1) * 10}, {0: batch * 10})
        assert held_rows(w, "1-injection") == [str(n) for n in range(batch + 1)], "written, and not yet again"
        assert w.copies()[batch] == 2


@pytest.mark.subprocess
def test_an_open_transaction_without_a_server_s_process_is_kept(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of Kafka, or a prepared one."""
    open_one = Writer(backend=None, table=1, statement="transaction of producer 7 in partition 0")
    monkeypatch.setattr(snapshots, "opened", lambda sink, own: Written([open_one]))
    with world(tmp_path, snapshots=True) as w:
        w.play(step(HERE, "kill driver"), held=[HERE])
        taken = snapshot(w, "1-injection")
    assert taken.writing == {"0": (open_one.statement,)}
    assert taken.left == taken.writing


@pytest.mark.subprocess
@pytest.mark.parametrize("kind", ["kill driver", "stop driver", "pause driver"])
@pytest.mark.parametrize("broken", ["", "async"])
def test_the_thread_by_which_spark_logs_late_is_seen_before_it_dies(
    tmp_path: Path, database: Database, broken: str, kind: str
) -> None:
    options = {"for_s": 0.3} if kind == "pause driver" else {}
    with world(tmp_path, *(["--broken", broken] if broken else []), snapshots=True) as w:
        (outcome,) = w.play(step(HERE, kind, **options), held=[HERE])
        assert outcome.injected
        assert snapshot(w, "1-injection").late_log is bool(broken)


@pytest.mark.subprocess
def test_a_second_injection_has_a_snapshot_of_its_own_and_names_its_attempt(tmp_path: Path, database: Database) -> None:
    windows = [at(CrashPoint.SINK_COMMITTED, batch) for batch in (1, 3)]
    with world(tmp_path, snapshots=True) as w:
        outcomes = w.play(*(step(each, "kill driver") for each in windows), held=windows)
        assert [o.attempt for o in outcomes] == [1, 2]
        assert [snapshot(w, f"{step}-injection").attempt for step in (1, 2)] == [1, 2]
        assert len(held_rows(w, "2-injection")) > len(held_rows(w, "1-injection"))


def two_sinks(handed: dict[int, int], *, queries: int = 1, feeds: str | None = None) -> Snapshots:
    """Of a run that has written into the first sink, and whose writer is held before the first row of the second."""
    current = [SimpleNamespace(folder=Path("a"))] * queries
    counted = [
        CountedSink(place=place, name=str(place), feeds=feeds, rows=cast(Any, SimpleNamespace(rows=lambda n=rows: n)))
        for place, rows in handed.items()
    ]
    observer = SimpleNamespace(current=lambda: current, listen=lambda heard: None)
    own = SimpleNamespace(parts={})
    parts = SimpleNamespace(sinks=(SINK, SINK), own=own, counted=counted, observer=observer, saving=lambda: ())
    return Snapshots(cast(Any, parts))


HELD = Reached(0, step=1, blocked=BlockedWriter(backend=7, client=None, rows=0), sink=1)


def test_a_writer_that_is_held_before_the_first_row_of_one_sink_has_written_into_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = Writer(backend=7, table=1, statement="insert")
    monkeypatch.setattr(snapshots, "opened", lambda sink, own: Written([writer]))
    taken = two_sinks({0: 40, 1: 1})
    handed = taken._counted(snapshots._Reading(), HELD, Path("a"))
    assert handed == {"0": (40, 0), "1": (0, 0)}
    assert taken._writing(snapshots._Reading(), HELD, handed) == {"0": ("insert",)}


@pytest.mark.parametrize(("queries", "feeds"), [(2, None), (2, "b"), (1, "b")])
def test_what_a_sink_of_another_query_had_when_the_batch_began_is_not_known(queries: int, feeds: str | None) -> None:
    taken = two_sinks({0: 40, 1: 1}, queries=queries, feeds=feeds)
    assert taken._counted(snapshots._Reading(), HELD, Path("a")) == {"0": (40, None), "1": (0, 0)}


def test_what_is_held_in_one_sink_is_released_though_another_ones_server_is_away() -> None:
    released: list[int] = []

    def away() -> None:
        raise StackError("asked Postgres; saw no answer")

    counted = [
        CountedSink(place=0, name="a", feeds=None, rows=cast(Any, SimpleNamespace(release=away))),
        CountedSink(place=1, name="b", feeds=None, rows=cast(Any, SimpleNamespace(release=lambda: released.append(1)))),
    ]
    RunContext.release(cast(Any, SimpleNamespace(counted=counted)), HELD)
    assert released == [1]


@pytest.mark.subprocess
def test_rows_that_a_server_has_lost_are_told_once_it_is_back(tmp_path: Path, database: Database) -> None:
    with world(tmp_path, snapshots=True) as w:
        w.sink.write_text("0 0 1")
        w.camera.injection(Reached(None, step=1), 1, folder=None)
        assert w.camera.back(1, "kafka") == []
        assert w.camera.back(1, "postgres") == []
        w.sink.write_text("0 2 3")
        assert w.camera.back(1, "postgres") == [
            "2 of the 3 rows that postgres fake held were gone or changed once it was back"
        ]
        assert held_rows(w, "1-back") == ["0", "2", "3"]


@pytest.mark.subprocess
@pytest.mark.parametrize(("kind", "options"), [("kill executor", {}), ("pause driver", {"for_s": 0.01})])
def test_the_driver_stands_still_for_the_snapshot_and_goes_on(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch, kind: str, options: dict[str, float]
) -> None:
    # Nobody tells of a task that was lost.
    monkeypatch.setattr(kill_executor, "REPORTED_WITHIN_S", 0.1)
    here = at(CrashPoint.BATCH_PLANNED, 2)
    with world(tmp_path, snapshots=True) as w:
        w.sleeper()
        stood: list[bool] = []
        database.asked = lambda: stood.extend(p.stopped() for p in w.supervisor.processes(Victim.JVM))
        (outcome,) = w.play(step(here, kind, **options), held=[here], finish=True)
        assert stood == [True]
        assert outcome.attempt == 1
        assert not (w.kept / "snapshots" / "1-restart").exists()


@pytest.mark.subprocess
def test_a_python_program_that_dies_alone_leaves_a_jvm_that_commits_nothing_before_the_snapshot(
    tmp_path: Path, database: Database
) -> None:
    # The JVM does not stand still while Python is killed.
    here = at(CrashPoint.BATCH_PLANNED, 1)
    with world(tmp_path, snapshots=True) as w:
        left: list[bool] = []
        database.asked = lambda: left.extend(p.stopped() for p in w.supervisor.living())
        (outcome,) = w.play(step(here, "kill driver", victim=Victim.PYTHON), held=[here])
        assert outcome.injected
        assert left[0]


@pytest.mark.subprocess
def test_nothing_is_kept_of_a_fault_that_struck_nothing(tmp_path: Path, database: Database) -> None:
    with world(tmp_path, snapshots=True) as w:
        (outcome,) = w.play(step(at(CrashPoint.BATCH_PLANNED, 2), "kill executor"))
        assert (outcome.injected, outcome.attempt) == (False, 0)
        assert not (w.kept / "snapshots").exists()


@pytest.mark.subprocess
def test_a_database_that_is_down_is_said_in_the_snapshot_and_the_run_goes_on(
    tmp_path: Path, database: Database
) -> None:
    def down() -> None:
        raise StackError("asked Postgres to read the sink fake; saw\nnothing")

    with world(tmp_path, snapshots=True) as w:
        database.asked = down
        (outcome,) = w.play(step(HERE, "kill driver"), held=[HERE], finish=True)
        assert outcome.injected
        assert snapshot(w, "1-injection").error == "asked Postgres to read the sink fake; saw nothing"
        table = load(w.kept / "snapshots" / "1-injection", 0)
        assert table is not None and table.unreadable == snapshot(w, "1-injection").error


@pytest.fixture
def restarted(tmp_path: Path, database: Database) -> Iterator[World]:
    """A run whose second attempt does nothing before `go` is there."""
    with world(tmp_path, "--broken", "slow", snapshots=True) as w:
        yield w


def finish(w: World) -> None:
    """Wait for the next attempt, and for the snapshot before it."""
    until("the next attempt", lambda: w.supervisor.driver and w.supervisor.driver.number > 1, within_s=WITHIN_S)
    w.camera.finish()


def go(w: World) -> None:
    (w.sink.parent / "go").touch()


@pytest.mark.subprocess
def test_what_a_zombie_wrote_after_the_injection_is_in_the_second_snapshot(
    restarted: World, database: Database
) -> None:
    zombie = iter(["insert into fake", ""])

    def busy() -> str:
        word = next(zombie, "")
        if word:
            with restarted.sink.open("a") as table:
                table.write("99\n")
        return word

    database.busy = busy
    (outcome,) = restarted.play(step(HERE, "kill driver"), held=[HERE])
    finish(restarted)
    assert outcome.injected
    assert (snapshot(restarted, "1-restart").attempt, snapshot(restarted, "1-restart").moment) == (1, "restart")
    assert "99" not in held_rows(restarted, "1-injection")
    assert "99" in held_rows(restarted, "1-restart")


def at_work(w: World) -> None:
    go(w)
    until("the next attempt to be at work", lambda: w.observer.touched(2), within_s=WITHIN_S)


def equipped(w: World) -> None:
    w.sleeper()


@pytest.mark.subprocess
@pytest.mark.parametrize("quicker", [at_work, equipped])
@pytest.mark.parametrize("meanwhile", [False, True], ids=["before", "while it was read"])
def test_a_second_snapshot_that_the_next_attempt_may_have_written_into_is_not_kept(
    restarted: World, database: Database, quicker: Callable[[World], None], meanwhile: bool
) -> None:
    done: list[bool] = []

    def once() -> None:
        if restarted.supervisor.driver is not None and restarted.supervisor.driver.number == 2 and not done:
            done.append(True)
            quicker(restarted)

    def busy() -> str:
        once()
        return ""

    if meanwhile:
        database.asked = once
    else:
        database.busy = busy
    (outcome,) = restarted.play(step(HERE, "kill driver"), held=[HERE])
    finish(restarted)
    assert outcome.injected and done
    assert not (restarted.kept / "snapshots" / "1-restart").exists()
    assert (restarted.kept / "snapshots" / "1-injection").exists()


@pytest.mark.subprocess
def test_the_end_of_a_run_does_not_wait_for_an_attempt_that_never_comes(tmp_path: Path, database: Database) -> None:
    with world(tmp_path, snapshots=True) as w:
        (outcome,) = w.play(step(HERE, "kill driver"), held=[HERE], after_s=60.0)
        assert outcome.injected
        w.camera.finish()
        assert not any(thread.is_alive() for thread in w.camera._threads)
        assert not (w.kept / "snapshots" / "1-restart").exists()


@pytest.mark.subprocess
def test_restarts_wait_for_as_long_as_they_are_held_and_deaths_are_noted(tmp_path: Path) -> None:
    with world(tmp_path, step_s=SLOW_S) as w:
        w.supervisor.start(Restart(), w.attempt)
        until("the first attempt", w.observer.has_progress, within_s=WITHIN_S)
        with w.supervisor.without_restarts():
            for process in w.supervisor.processes():
                process.send(signal.SIGKILL)
            assert w.supervisor.ending(1, within_s=WITHIN_S) is not None
            assert w.supervisor.driver is not None and w.supervisor.driver.number == 1
        until("the second", lambda: w.supervisor.driver and w.supervisor.driver.number == 2, within_s=WITHIN_S)


@pytest.mark.subprocess
@pytest.mark.parametrize("scheduled", [False, True])
def test_an_attempt_that_no_step_ended_is_told_before_the_next_one_is_started(tmp_path: Path, scheduled: bool) -> None:
    told = list[tuple[int, int]]()
    with world(tmp_path, "--broken", "crash") as w:
        if scheduled:
            w.supervisor.expect_death(1, [])

        def ended(number: int) -> None:
            assert w.supervisor.driver is not None
            told.append((number, w.supervisor.driver.number))

        w.supervisor.start(Restart(max_restarts=1), w.attempt, ended=ended)
        until("the last restart", lambda: w.supervisor.gave_up, within_s=WITHIN_S)
    assert told == ([(2, 2)] if scheduled else [(1, 1)])


@pytest.mark.subprocess
def test_the_end_comes_also_while_restarts_are_held(tmp_path: Path) -> None:
    with world(tmp_path, "--broken", "crash") as w, w.supervisor.without_restarts():
        w.supervisor.start(Restart(), w.attempt)
        assert w.supervisor.ending(1, within_s=WITHIN_S) is not None
        w.supervisor.stop()
        assert w.supervisor.driver is not None and w.supervisor.driver.number == 1
