"""Triggers, faults, evidence and restarts, on a pipeline without Spark that speaks the same protocol."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from harness.context import BlockedWriter, Reached, RunContext
from harness.errors import HarnessError
from harness.faults import FAULTS, kill_executor
from harness.faults.base import Injection, NoOptions, Proof, killing
from harness.faults.kill_executor import executors
from harness.history import AttemptEnded, AttemptStarted, FaultInjected, Line
from harness.hosts import signals
from harness.hosts.local import LocalProcess
from harness.kinds import About, Refusals
from harness.run.schedule import Schedule
from harness.run.schedule.evidence import agrees
from harness.scenario import CrashPoint, Fault, Impact, Restart, Step, Trigger, Victim
from harness.session import reaper
from harness.stack import Process
from harness.triggers import base, trigger
from harness.triggers.base import Planned
from harness.wait import until
from tests.worlds import BATCHES, SLOW_S, WITHIN_S, at, step, world


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("point", "again"),
    [(CrashPoint.BATCH_PLANNED, 1), (CrashPoint.SINK_COMMITTED, 2), (CrashPoint.BATCH_COMMITTED, 1)],
)
def test_a_kill_strikes_its_window_and_shows_it_in_the_sink(tmp_path: Path, point: CrashPoint, again: int) -> None:
    with world(tmp_path) as w:
        (outcome,) = w.play(step(at(point, 3), "kill driver"), held=[at(point, 3)], finish=True)
        reached = 3
        assert outcome.injected and outcome.batch == reached
        assert outcome.evidence.signalled["driver 1"] == "SIGKILL"
        assert outcome.evidence.driver_status == -signal.SIGKILL
        assert len(outcome.evidence.signalled) == 3  # the program, its JVM, the wait status
        after = outcome.evidence.checkpoint_after
        assert max(after["offsets"]) == reached
        assert max(after["commits"]) == (reached if point is CrashPoint.BATCH_COMMITTED else reached - 1)
        assert outcome.evidence.in_flight == "10 records"
        assert w.copies()[reached] == again
        assert {w.copies()[batch] for batch in range(BATCHES) if batch != reached} == {1}


@pytest.mark.subprocess
def test_the_evidence_of_the_window_before_the_offset_commit_is_the_temporary_file(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        here = at(CrashPoint.SINK_COMMITTED, 2)
        (outcome,) = w.play(step(here, "kill driver"), held=[here])
        assert "commits/.2.*.tmp was begun and never renamed" in outcome.evidence.note


@pytest.mark.subprocess
def test_a_kill_that_has_no_query_is_no_injection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with world(tmp_path) as w, monkeypatch.context() as patch:
        patch.setattr(signals, "kill", lambda processes: {str(p.pid): False for p in processes})
        (outcome,) = w.play(step(at(CrashPoint.SINK_COMMITTED, 3), "kill driver"), finish=True)
        assert not outcome.injected
        assert w.copies()[3] == 1
        patch.undo()


@pytest.mark.subprocess
def test_a_driver_that_ignores_sigterm_was_not_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killing, "DEATH_WITHIN_S", 0.5)
    with world(tmp_path, "--broken", "deaf") as w:
        here = at(CrashPoint.BATCH_PLANNED, 2)
        (outcome,) = w.play(step(here, "stop driver"), held=[here], finish=True)
        assert not outcome.injected
        assert (outcome.evidence.signalled["driver 1"], outcome.evidence.driver_status) == ("alive", None)
        assert "lived on" in outcome.evidence.note
        assert w.copies()[2] == 1


@pytest.mark.subprocess
@pytest.mark.parametrize(
    "when",
    [
        at(CrashPoint.BATCH_PLANNED, 2),
        at(CrashPoint.SINK_COMMITTED, 2),
        trigger("records", 30),
        trigger("elapsed", 0.1),
    ],
    ids=str,
)
def test_a_driver_that_obeys_sigterm_was_stopped_whatever_it_commits_on_the_way(tmp_path: Path, when: Trigger) -> None:
    with world(tmp_path, "--broken", "polite", step_s=SLOW_S) as w:
        (outcome,) = w.play(step(when, "stop driver"))
        assert (outcome.evidence.signalled["driver 1"], outcome.evidence.driver_status) == ("exit status 0", 0)
        assert outcome.batch in outcome.evidence.checkpoint_after["commits"]
        assert outcome.injected


@pytest.mark.subprocess
def test_a_fault_that_fails_is_told_with_its_step_and_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def inject(*given: object) -> Injection:
        raise ValueError("no such server")

    monkeypatch.setattr(FAULTS["kill driver"], "inject", inject)
    line = inject.__code__.co_firstlineno + 1
    with world(tmp_path) as w, pytest.raises(HarnessError) as failed:
        w.play(step(at(CrashPoint.SINK_COMMITTED, 2), "kill driver"))
    where = f"{__file__}:{line}"
    told = f"step 1 (`kill driver`) of the schedule failed: ValueError('no such server') in {where}"
    assert str(failed.value) == told


@pytest.mark.subprocess
def test_a_kill_of_nothing_is_no_injection(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        (outcome,) = w.play(step(at(CrashPoint.BATCH_PLANNED, 3), "kill executor"))
        assert not outcome.injected
        assert outcome.evidence.signalled == {}


@pytest.mark.subprocess
@pytest.mark.parametrize("which", ["one", "all"])
def test_no_executor_is_killed_for_rows_that_another_process_writes(tmp_path: Path, which: str) -> None:
    sleeper = psutil.Popen([sys.executable, "-c", "import threading; threading.Event().wait(60)"])
    with world(tmp_path) as w, socket.create_server(("127.0.0.1", 0)) as server:
        w.world.stack.helpers.append(LocalProcess(psutil.Process(sleeper.pid)))  # type: ignore[attr-defined]
        with socket.create_connection(server.getsockname()) as writer:
            held = BlockedWriter(rows=20, backend=1, client=writer.getsockname())
            found = w.world.stack.executors(w.world.own)
            assert executors(found, Reached(2, blocked=held), every=which == "all") == []
    sleeper.wait()


@pytest.mark.subprocess
def test_an_executor_that_dies_when_its_batch_is_over_is_no_injection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = psutil.Popen([sys.executable, "-c", "import threading; threading.Event().wait(60)"])
    monkeypatch.setattr(kill_executor, "lost_task", lambda world, log, since: True)
    with world(tmp_path) as w:
        w.world.stack.helpers.append(LocalProcess(psutil.Process(sleeper.pid)))  # type: ignore[attr-defined]
        here = at(CrashPoint.BATCH_COMMITTED, 3)
        (outcome,) = w.play(step(here, "kill executor"), held=[here])
        assert not outcome.injected
        assert outcome.evidence.signalled == {str(sleeper.pid): "process of an executor, gone after SIGKILL"}
    sleeper.wait()


def loses(log: Path, words: str) -> None:
    """The driver's log says so a moment after it was asked."""
    threading.Timer(0.1, lambda: log.write_text(f"{log.read_text()}{words}\n")).start()


LOST = "WARN TaskSetManager: Lost task 0.0 in stage 3.0 (TID 5) (127.0.0.1 executor 0): ExecutorLostFailure (executor 0"


def test_only_a_task_that_was_lost_proves_that_an_executor_was_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "driver.log"
    log.write_text(f"{LOST}\n")
    monkeypatch.setattr(kill_executor, "REPORTED_WITHIN_S", 1.0)
    world: Any = SimpleNamespace(stop=threading.Event())
    assert kill_executor.lost_task(world, log, 0)
    assert not kill_executor.lost_task(world, log, log.stat().st_size), "that was before"
    assert not kill_executor.lost_task(world, None, 0)
    since = log.stat().st_size
    monkeypatch.setattr(kill_executor, "REPORTED_WITHIN_S", WITHIN_S)
    loses(log, LOST)
    assert kill_executor.lost_task(world, log, since)
    world.stop.set()
    assert not kill_executor.lost_task(world, log, log.stat().st_size), "nobody waits once the run is over"


@pytest.mark.subprocess
@pytest.mark.parametrize("told", [True, False])
def test_an_executor_is_struck_only_if_the_driver_lost_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    monkeypatch.setattr(kill_executor, "lost_task", lambda world, log, since: told)
    sleeper = psutil.Popen([sys.executable, "-c", "import threading; threading.Event().wait(60)"])
    with world(tmp_path) as w:
        w.world.stack.helpers.append(LocalProcess(psutil.Process(sleeper.pid)))  # type: ignore[attr-defined]
        here = at(CrashPoint.BATCH_PLANNED, 3)
        (outcome,) = w.play(step(here, "kill executor"), held=[here])
        assert (outcome.injected, kill_executor.IDLE in outcome.evidence.note) == (told, not told)
    sleeper.wait()


@pytest.mark.subprocess
def test_the_schedules_own_kills_do_not_use_up_the_restarts(tmp_path: Path) -> None:
    windows = [at(CrashPoint.BATCH_PLANNED, batch) for batch in range(1, 9)]
    with world(tmp_path, batches=10) as w:
        outcomes = w.play(*(step(each, "kill driver") for each in windows), held=windows)
        assert [o.injected for o in outcomes] == [True] * 8
        assert len(w.supervisor.deaths) == 8 > Restart().max_restarts
        assert w.supervisor.gave_up == ""


@pytest.mark.subprocess
def test_whoever_was_killed_is_named_as_a_snapshot_names_the_living(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(tmp_path) as w:
        living, kill = set[str](), signals.kill

        def noted(processes: Sequence[Process]) -> dict[str, bool]:
            living.update(process.name for process in w.supervisor.living())
            return kill(processes)

        monkeypatch.setattr(signals, "kill", noted)
        here = at(CrashPoint.SINK_COMMITTED, 3)
        (outcome,) = w.play(step(here, "kill driver"), held=[here])
        assert set(outcome.evidence.signalled) == {*living, "driver 1"}


@pytest.mark.subprocess
@pytest.mark.parametrize("after_s", [0.0, 0.5])
def test_a_second_step_waits_until_the_new_driver_is_at_work(tmp_path: Path, after_s: float) -> None:
    soon = trigger("elapsed", 0.01)
    with world(tmp_path) as w:
        # Neither life is over before its state was read.
        held = [at(CrashPoint.BATCH_PLANNED, batch) for batch in (0, 1)]
        outcomes = w.play(step(soon, "kill driver"), step(soon, "kill driver"), held=held, after_s=after_s)
        assert [o.injected for o in outcomes] == [True, True]
        # The program, its JVM and the wait status: the JVM was there, so there was something to strike.
        assert [len(o.evidence.signalled) for o in outcomes] == [3, 3]


@pytest.mark.subprocess
def test_an_attempt_that_begins_tells_how_long_after_the_death_and_beside_whom(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        told: list[Line] = []
        w.world.history.listen(told.append)
        w.sleeper()
        soon, held = trigger("elapsed", 0.01), [at(CrashPoint.BATCH_PLANNED, 0)]
        w.play(step(soon, "kill driver"), held=held, finish=True, after_s=0.3)
        first, second = (line.event for line in told if isinstance(line.event, AttemptStarted))
        assert first.after_s is None
        assert second.after_s is not None and second.after_s >= 0.3
        assert len(second.zombies) == 1, "the executor of before lives"


@pytest.mark.subprocess
def test_rows_and_failpoints_are_not_armed_while_a_dead_life_still_writes(tmp_path: Path) -> None:
    sleeper = psutil.Popen([sys.executable, "-c", "import threading; threading.Event().wait(60)"])
    here = trigger("failpoint", "here")
    with world(tmp_path, batches=60, step_s=SLOW_S) as w:
        schedule = Schedule((step(at(CrashPoint.BATCH_PLANNED, 1), "kill driver"), step(here, "kill driver")), w.world)
        w.world.stack.helpers.append(LocalProcess(psutil.Process(sleeper.pid)))  # type: ignore[attr-defined]
        schedule.start()
        w.supervisor.start(Restart(), w.attempt)
        armed = w.world.own.folder / "failpoints" / "here"
        until("the first step", lambda: schedule.outcomes, within_s=WITHIN_S)
        until("the next attempt", lambda: w.supervisor.alive and w.observer.has_progress(), within_s=WITHIN_S)
        assert [p.name for p in w.supervisor.leftovers()] == [str(sleeper.pid)]
        assert not armed.exists()
        sleeper.kill()
        sleeper.wait()
        until("the failpoint to be armed", armed.exists, within_s=WITHIN_S)
        schedule.stop()


@pytest.mark.subprocess
@pytest.mark.parametrize(("batch", "met"), [(None, ""), (3, "3")])
def test_a_failpoint_is_not_met_by_what_the_step_before_left_nor_in_another_batch(
    tmp_path: Path, batch: int | None, met: str
) -> None:
    with world(tmp_path, batches=60, step_s=SLOW_S) as w:
        here = trigger("failpoint", "here", batch=batch)
        schedule, folder = Schedule((step(here, "kill driver"),), w.world), w.world.own.folder / "failpoints"
        folder.mkdir()
        (folder / "reached.here.77").write_text("1", encoding="utf-8")
        w.supervisor.start(Restart(), w.attempt)
        schedule.start()
        armed = folder / ("here" if batch is None else f"here@{batch}")
        until("the failpoint to be armed", armed.exists, within_s=WITHIN_S)
        if batch is not None:
            (folder / "reached.here.78").write_text("2", encoding="utf-8")
        assert not (folder / "reached.here.77").exists()
        (folder / "reached.here.79").write_text(met, encoding="utf-8")
        until("the step", lambda: schedule.outcomes, within_s=WITHIN_S)
        assert schedule.outcomes[0].batch == batch
        schedule.stop()


@pytest.mark.subprocess
def test_a_window_that_never_comes_says_so(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        (outcome,) = w.play(step(at(CrashPoint.SINK_COMMITTED, 99), "kill driver"))
        assert not outcome.injected
        assert outcome.evidence.note == "sink-committed of batch 99 never came: all batches are done"


@pytest.mark.subprocess
def test_a_window_that_had_closed_is_missed_without_faults_and_the_next_batch_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[int] = []

    def closed_for_batch_3(step: Step, moment: Any, listing: Any) -> bool:
        if moment.batch == 3:
            refused.append(3)
            return False
        return agrees(step, moment, listing)

    monkeypatch.setattr("harness.run.schedule.evidence.agrees", closed_for_batch_3)
    held = [at(CrashPoint.SINK_COMMITTED, batch) for batch in (3, 4)]
    with world(tmp_path) as w:
        (outcome,) = w.play(step(held[0], "kill driver"), held=held, finish=True)
        assert refused and outcome.injected and outcome.batch == 4
        assert outcome.evidence.note.startswith("batch 3 was missed, batch 4 was tried instead")
        assert w.copies()[3] == 1 and w.copies()[4] == 2


@pytest.mark.subprocess
@pytest.mark.parametrize("victim", [Victim.JVM, Victim.PYTHON])
def test_a_victim_of_the_driver_dies_alone(tmp_path: Path, victim: Victim) -> None:
    here = at(CrashPoint.BATCH_PLANNED, 1)
    with world(tmp_path) as w:
        (outcome,) = w.play(step(here, "kill driver", victim=victim), held=[here])
        assert outcome.injected
        # The JVM ends as its program did.
        assert outcome.evidence.signalled["driver 1"] == "SIGKILL"
        assert len(outcome.evidence.signalled) == 2


@pytest.mark.subprocess
def test_two_steps_go_in_order_through_two_lives(tmp_path: Path) -> None:
    windows = [at(CrashPoint.SINK_COMMITTED, batch) for batch in (2, 5)]
    with world(tmp_path) as w:
        outcomes = w.play(*(step(each, "kill driver") for each in windows), held=windows, finish=True)
        assert [(o.injected, o.batch) for o in outcomes] == [(True, 2), (True, 5)]
        assert [(d.number, d.status) for d in w.supervisor.deaths] == [(1, -9), (2, -9)]
        assert (w.copies()[2], w.copies()[5]) == (2, 2)


@pytest.mark.subprocess
def test_a_crash_of_the_application_takes_driver_and_executors_at_once(tmp_path: Path) -> None:
    sleeper = psutil.Popen([sys.executable, "-c", "import threading; threading.Event().wait(60)"])
    with world(tmp_path) as w:
        w.world.stack.helpers.append(LocalProcess(psutil.Process(sleeper.pid)))  # type: ignore[attr-defined]
        here = at(CrashPoint.BATCH_PLANNED, 2)
        (outcome,) = w.play(step(here, "crash application"), held=[here])
        assert outcome.injected
        assert outcome.evidence.signalled[str(sleeper.pid)] == "process of an executor, gone after SIGKILL"
    assert sleeper.wait() == -9


@pytest.mark.subprocess
def test_records_and_elapsed_triggers_need_something_in_flight(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        first, second = w.play(
            step(trigger("records", 30), "kill driver"),
            step(trigger("elapsed", 0.1), "kill driver"),
            held=[at(CrashPoint.BATCH_PLANNED, batch) for batch in (2, 4)],
        )
        assert first.injected and second.injected
        assert first.evidence.in_flight and second.evidence.in_flight


@pytest.mark.subprocess
def test_a_paused_driver_stands_still_and_goes_on(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        here = at(CrashPoint.BATCH_PLANNED, 2)
        (outcome,) = w.play(step(here, "pause driver", for_s=0.2), held=[here])
        assert outcome.injected
        assert set(outcome.evidence.signalled.values()) == {"paused for 0.2 s"}
        assert w.supervisor.deaths == []


RENAMES = """
import os, sys, threading
def rename(name):
    open(name, "w").close()
    while True:
        os.rename(name, name + "'")
        os.rename(name + "'", name)
for number in range(4):
    threading.Thread(target=rename, args=(f"{sys.argv[1]}/{number}",), daemon=True).start()
input()
"""


@pytest.mark.subprocess
def test_nothing_changes_once_a_process_is_stopped(tmp_path: Path) -> None:
    child = psutil.Popen([sys.executable, "-c", RENAMES, str(tmp_path)], stdin=subprocess.PIPE)
    process = LocalProcess(psutil.Process(child.pid))
    try:
        until("its threads to rename", lambda: len(list(tmp_path.iterdir())) == 4, within_s=WITHIN_S)
        for _ in range(50):
            assert signals.freeze([process]) == [process]
            threads = [reaper.parse((task / "stat").read_bytes()) for task in Path(f"/proc/{child.pid}/task").iterdir()]
            assert {thread.state for thread in threads if thread} == {"T"}
            signals.thaw([process])
    finally:
        child.kill()
        child.communicate()


@pytest.mark.subprocess
def test_a_process_that_has_ended_does_not_move() -> None:
    child = psutil.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = LocalProcess(psutil.Process(child.pid))
    assert signals.moves(process)
    signals.freeze([process])
    assert not signals.moves(process)
    signals.thaw([process])
    child.communicate(b"\n")
    assert not signals.moves(process)


@pytest.mark.subprocess
def test_the_supervisor_gives_up_and_says_so(tmp_path: Path) -> None:
    with world(tmp_path, "--broken", "crash") as w:
        w.supervisor.start(Restart(max_restarts=2), w.attempt)
        until("the supervisor to give up", lambda: w.supervisor.gave_up, within_s=WITHIN_S)
        error = "ImportError: no module named nowhere"
        most = "the driver died 3 times and is restarted at most 2 times"
        assert w.supervisor.gave_up == f"{most}; its last error: {error}"
        ends = [line.event.error for line in w.lines if isinstance(line.event, AttemptEnded)]
        assert ends == [error] * 3
        assert [d.status for d in w.supervisor.deaths] == [1, 1, 1]
        assert "no module named nowhere" in (tmp_path / "driver-1.log").read_text()


def test_nobody_signals_init_or_the_harness() -> None:
    with pytest.raises(Exception, match="not a process of a run"):
        signals.kill([LocalProcess(psutil.Process())])
    with pytest.raises(Exception, match="not a process of a run"):
        signals.kill([LocalProcess(psutil.Process(1))])


class Boxed:
    """A process with a network of its own."""

    name, born = "container a", 0.0

    def __init__(self, *, deaf: bool = False, dies: bool = False, stays_off: bool = False) -> None:
        self.on, self.deaf, self.dies, self.stays_off = True, deaf, dies, stays_off

    def cut(self) -> bool:
        self.on = self.on and self.deaf
        return True

    def join(self) -> bool:
        self.on = not self.dies and not self.stays_off
        return not self.dies

    def disconnected(self) -> bool:
        return not self.on

    def send(self, what: signal.Signals) -> bool:
        return True

    def alive(self) -> bool:
        return not self.dies

    def stopped(self) -> bool:
        return False

    def family(self) -> list[Boxed]:
        return [self]

    def speaks_from(self, address: str, port: int) -> bool:
        return False


NOTHING: dict[str, Any] = {
    **dict.fromkeys(("stack", "own", "sent", "in_flight", "hopeless", "has_progress")),
    "observer": SimpleNamespace(states=lambda: ()),
}


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ([Boxed()], {"container a": "cut off for 0.01 s"}),
        ([Boxed(deaf=True)], {}),
        ([Boxed(dies=True)], {"container a": "cut off, and ended within 0.0 s of it"}),
        ([Boxed(stays_off=True)], {}),
        ([LocalProcess(psutil.Process())], {}),
    ],
    ids=["cut off", "never was off", "died meanwhile", "did not come back", "no network of its own"],
)
def test_only_what_was_off_the_network_was_cut_off(hosts: list[Process], said: dict[str, str]) -> None:
    supervisor = SimpleNamespace(processes=lambda: hosts)
    history: Any = SimpleNamespace(elapsed_s=lambda: 1.0)
    world: Any = RunContext(**NOTHING, supervisor=supervisor, stop=threading.Event(), history=history)
    cut = step(trigger("elapsed", 0.1), "disconnect driver", for_s=0.01)
    assert FAULTS["disconnect driver"].inject(world, cut, Reached(None)).signalled == said


def test_a_driver_that_is_cut_off_is_let_go_from_where_it_was_held(tmp_path: Path) -> None:
    armed = tmp_path / "failpoints" / "sink-written"
    armed.parent.mkdir()
    armed.touch()
    seen: list[bool] = []

    def wait(_: float) -> bool:
        seen.append(armed.exists())
        return False

    stop: Any = SimpleNamespace(wait=wait)
    history: Any = SimpleNamespace(elapsed_s=lambda: 1.0)
    supervisor = SimpleNamespace(processes=lambda: [Boxed()])
    world: Any = RunContext(
        **{**NOTHING, "own": SimpleNamespace(folder=tmp_path)},
        supervisor=supervisor,
        stop=stop,
        history=history,
    )
    cut = step(trigger("failpoint", "sink-written"), "disconnect driver", for_s=0.01)
    assert FAULTS["disconnect driver"].inject(world, cut, Reached(None)).signalled == {
        "container a": "cut off for 0.01 s"
    }
    assert seen and not any(seen)


@pytest.mark.subprocess
def test_a_batch_without_a_record_is_passed_over_for_the_next_one(tmp_path: Path) -> None:
    held = [at(CrashPoint.SINK_COMMITTED, 1), at(CrashPoint.BATCH_PLANNED, 4)]
    with world(tmp_path, "--broken", "late") as w:
        first, second = w.play(
            step(at(CrashPoint.SINK_COMMITTED, 0), "kill driver"),
            step(at(CrashPoint.BATCH_PLANNED, 3), "kill driver"),
            held=held,
        )
        assert (first.injected, second.injected) == (True, True)
        assert (first.batch, second.batch) == (1, 4)
        assert "batch 0 was missed, batch 1 was tried instead" in first.evidence.note


@pytest.mark.subprocess
@pytest.mark.parametrize("when", [trigger("records", 0), trigger("elapsed", 0.0)])
def test_records_and_elapsed_wait_for_a_batch_with_records(tmp_path: Path, when: Trigger) -> None:
    with world(tmp_path, "--broken", "late") as w:
        (outcome,) = w.play(step(when, "kill driver"), held=[at(CrashPoint.BATCH_PLANNED, 1)])
        assert outcome.injected
        assert outcome.batch == 1
        assert outcome.checkpoint == "checkpoint"


@pytest.mark.subprocess
def test_a_window_of_a_query_that_is_named_is_taken_there_only(tmp_path: Path) -> None:
    hop = trigger("point", CrashPoint.SINK_COMMITTED, batch=2, query="hop")
    with world(tmp_path, "--broken", "hop") as w:
        w.world = replace(w.world, in_flight=lambda: "")
        (outcome,) = w.play(step(hop, "kill driver"), held=[hop])
        assert outcome.injected
        assert outcome.evidence.in_flight == "batch 2 of hop, which reads something else"
        assert (outcome.checkpoint, outcome.batch, outcome.attempt) == ("hop", 2, 1)
        assert outcome.evidence.checkpoint_after["commits"] == (0, 1)
        names = [(query.checkpoint, query.ours) for query in w.observer.queries()]
        assert names == [("checkpoint", True), ("hop", False)]


@pytest.mark.subprocess
@pytest.mark.parametrize("when", [trigger("records", 0), trigger("elapsed", 0.0)])
def test_records_and_elapsed_wait_for_a_batch_of_the_query_that_is_named(tmp_path: Path, when: Trigger) -> None:
    with world(tmp_path, "--broken", "hop", batches=60, step_s=SLOW_S) as w:
        w.world = replace(w.world, in_flight=lambda: "")
        (outcome,) = w.play(step(replace(when, query="hop", batch=2), "kill driver"))
        assert outcome.injected and outcome.checkpoint == "hop"
        assert outcome.batch is not None and outcome.batch >= 2


def test_a_run_that_is_torn_down_tells_of_no_step_that_was_missed(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        heard: list[Line] = []
        w.world.history.listen(heard.append)
        schedule = Schedule((step(at(CrashPoint.SINK_COMMITTED, 10_000), "kill driver"),), w.world)
        schedule.start()
        schedule.stop()
        assert [outcome.injected for outcome in schedule.outcomes] == [False]
        assert not any(isinstance(line.event, FaultInjected) for line in heard)


@pytest.mark.subprocess
def test_a_query_that_is_named_and_never_comes_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "HOP_S", 0.3)
    never = trigger("point", CrashPoint.SINK_COMMITTED, batch=1, query="nowhere")
    with world(tmp_path) as w:
        (outcome,) = w.play(step(never, "kill driver"))
        assert not outcome.injected
        missing = "no query's checkpoint is a folder 'nowhere', there are checkpoint"
        never_came = "sink-committed of batch 1 of query nowhere never came"
        assert outcome.evidence.note == f"{never_came}: {missing}; all batches are done"


class SilentKill:
    """A fault of somebody else's that kills the driver and does not say how it ended."""

    about = About(name="silent kill", summary="", example="", options=NoOptions)
    impact = Impact.DRIVER_KILLED
    needs: frozenset[Any] = frozenset()

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        return iter(())

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        targets = run.supervisor.processes()
        killing.scheduled(run, run.supervisor.driver, targets)
        # None may act on the death of another: the program ends by itself where its JVM dies first.
        signals.freeze(targets)
        gone = signals.kill(targets)
        return Injection(signalled=dict.fromkeys(gone, "killed"), proof=Proof.AFTER)


class Liar(SilentKill):
    """Says that it ended somebody, and strikes nobody."""

    def __init__(self, impact: Impact, status: int | None) -> None:
        self.impact, self._status = impact, status

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        return Injection(signalled={"pod driver-0": "deleted"}, driver_status=self._status)


@pytest.mark.subprocess
@pytest.mark.parametrize("status", [None, -9])
@pytest.mark.parametrize("impact", [Impact.DRIVER_KILLED, Impact.DRIVER_STOPPED])
def test_that_the_driver_died_is_never_a_faults_own_word(
    tmp_path: Path, impact: Impact, status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.schedule.evidence.FAULTS", {"kill driver": Liar(impact, status)})
    monkeypatch.setattr(killing, "DEATH_WITHIN_S", 0.3)
    asked = step(at(CrashPoint.BATCH_PLANNED, 2), "kill driver")
    with world(tmp_path) as w:
        (outcome,) = w.play(replace(asked, do=replace(asked.do, impact=impact)), held=[asked.when])
        assert not outcome.injected
        assert outcome.evidence.driver_status is None
        assert "it was signalled and lived on" in outcome.evidence.note


@pytest.mark.subprocess
def test_that_an_executor_died_is_never_a_faults_own_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.schedule.evidence.FAULTS", {"kill driver": Liar(Impact.EXECUTOR_KILLED, None)})
    asked = step(at(CrashPoint.BATCH_PLANNED, 2), "kill driver")
    command = [sys.executable, "-c", "import threading; threading.Event().wait(60)"]
    with world(tmp_path) as w, subprocess.Popen(command) as child, monkeypatch.context() as patch:
        patch.setattr(w.world.stack, "executors", lambda own: [LocalProcess(psutil.Process(child.pid))])
        (outcome,) = w.play(replace(asked, do=replace(asked.do, impact=Impact.EXECUTOR_KILLED)), held=[asked.when])
        child.kill()
        assert not outcome.injected
        assert "it was signalled and lived on" in outcome.evidence.note


@pytest.mark.subprocess
def test_a_fault_that_ends_the_driver_and_does_not_say_how_is_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.schedule.evidence.FAULTS", {"kill driver": SilentKill()})
    with world(tmp_path) as w:
        here = at(CrashPoint.BATCH_PLANNED, 2)
        (outcome,) = w.play(step(here, "kill driver"), held=[here], finish=True)
        assert outcome.injected
        assert outcome.evidence.driver_status == -signal.SIGKILL
