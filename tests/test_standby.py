"""A driver that waits ready for the restart: when its program begins, and what becomes of one that is not wanted."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.components.spark import standby
from harness.components.spark.driver_process import submit_arguments
from harness.context import TriggerHit
from harness.faults import FAULTS
from harness.run.schedule import evidence
from harness.run.supervisor import Supervisor
from harness.run_folder.journal import Journal, read
from harness.scenario import Fault, Impact, Pipeline, Restart, Step, Victim
from harness.stack import Process, Start
from harness.triggers import trigger
from harness.wait import until

KILLED = -9


@dataclass
class Driver:
    """An attempt that lives until `status` is set."""

    number: int
    log: Path
    status: int | None = None
    tree: list[Any] = field(default_factory=list)

    def poll(self) -> int | None:
        return self.status

    def processes(self, victim: Victim = Victim.TREE) -> list[Process]:
        return self.tree


@dataclass
class Waiting:
    """A standby; `told` is what was asked of it, in order."""

    driver: Driver
    able: bool
    goes: bool
    told: list[str] = field(default_factory=list)

    def ready(self, *, stop: Callable[[], bool]) -> bool:
        self.told.append("ready?")
        return self.able

    def go(self) -> bool:
        self.told.append("go")
        return self.goes

    def got(self) -> Start | None:
        return Start.WARM if "go" in self.told else None

    def drop(self) -> None:
        self.told.append("dropped")


@dataclass
class Cluster:
    """A stack without processes. An executor is always there."""

    able: bool = True
    goes: bool = True
    launched: list[Driver] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)

    def launch(self, own: Any, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        self.launched.append(Driver(number, log))
        return self.launched[-1]

    def standby(self, own: Any, pipeline: Pipeline, *, after: Driver, log: Path) -> Waiting:
        self.waiting.append(Waiting(Driver(after.number + 1, log), self.able, self.goes))
        return self.waiting[-1]

    def executors(self, own: Any, *, attempt: int | None = None) -> list[Any]:
        return [object()]

    def processes(self, own: Any, *, attempt: int | None = None) -> list[Any]:
        return []


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "journal.jsonl")
    yield made
    made.close()


def supervised(journal: Journal, stack: Any) -> Supervisor:
    own: Any = SimpleNamespace(folder=Path())
    return Supervisor(stack, own, Pipeline(entry="program"), journal=journal, logs=Path())


def second(supervisor: Supervisor, stack: Cluster) -> None:
    """Kill the first attempt, and wait for the next."""
    stack.launched[0].status = KILLED
    until("the second attempt", lambda: supervisor.driver is not None and supervisor.driver.number == 2, within_s=60.0)


@pytest.mark.parametrize(
    ("name", "may_wait"),
    [
        ("spark.metrics.conf.*.sink.csv.class", False),
        ("spark.metrics.namespace", False),
        ("spark.serializer", False),
        ("spark.kryo.registrator", False),
        ("spark.extraListeners", False),
        ("spark.plugins", False),
        ("spark.eventLog.enabled", False),
        ("spark.sql.catalog.mine", False),
        ("spark.sql.shuffle.partitions", True),
    ],
)
@pytest.mark.parametrize("by_the_program", [True, False])
def test_settings_that_act_without_the_program_make_none(name: str, may_wait: bool, by_the_program: bool) -> None:
    own: Any = SimpleNamespace(parts={}, spark_master="spark://a:1")
    pipeline = Pipeline(entry="program.py", conf={} if by_the_program else {name: "value"})
    words = ["--conf", f"{name}=value"] if by_the_program else []
    words += shlex.split(submit_arguments(own, pipeline.conf))
    found = standby.asked(own, pipeline, {}, words)
    assert found == (([(name, "value")] if by_the_program else []) if may_wait else None)


def test_its_program_begins_when_nobody_looks_at_the_dead_attempt_any_more(tmp_path: Path, journal: Journal) -> None:
    stack, seen = Cluster(), []
    supervisor = supervised(journal, stack)

    def settle() -> None:
        assert supervisor.driver is not None
        seen.append((supervisor.driver.number, supervisor.equipped(), list(stack.waiting[0].told)))

    supervisor.start(Restart(), lambda number: None, settle=settle)
    supervisor.prepare()
    second(supervisor, stack)
    until("the program's session", lambda: supervisor.starts.get(2) is Start.WARM, within_s=60.0)
    assert seen == [(2, False, ["ready?"])]
    assert supervisor.equipped()
    assert [driver.number for driver in stack.launched] == [1]
    supervisor.stop()
    told = [event for event in read(tmp_path / "journal.jsonl") if event["what"] in ("launched", "standby taken")]
    assert [(event["what"], event["number"]) for event in told] == [
        ("launched", 1), ("launched", 2), ("standby taken", 2),
    ]  # fmt: skip
    assert supervisor.starts == {1: Start.COLD, 2: Start.WARM}
    assert "after_s" not in told[0] and told[1]["after_s"] >= 0.0 and told[1]["orphans"] == []


@pytest.mark.parametrize(
    ("able", "goes", "told"), [(False, True, ["ready?", "dropped"]), (True, False, ["ready?", "go", "dropped"])]
)
def test_where_it_cannot_the_attempt_begins_cold(journal: Journal, able: bool, goes: bool, told: list[str]) -> None:
    stack = Cluster(able, goes)
    supervisor = supervised(journal, stack)
    supervisor.start(Restart(), lambda number: None)
    supervisor.prepare()
    stack.launched[0].status = KILLED
    until("a cold start", lambda: len(stack.launched) == 2 and 2 in supervisor.starts, within_s=60.0)
    supervisor.stop()
    assert stack.waiting[0].told == told
    assert supervisor.starts == {1: Start.COLD, 2: Start.COLD}


def test_there_is_one_for_each_attempt_and_none_is_left(journal: Journal) -> None:
    stack = Cluster()
    supervisor = supervised(journal, stack)
    supervisor.start(Restart(), lambda number: None)
    supervisor.prepare()
    supervisor.prepare()
    second(supervisor, stack)
    until("the program's session", lambda: supervisor.starts.get(2) is Start.WARM, within_s=60.0)
    supervisor.prepare()
    assert [waiting.driver.number for waiting in stack.waiting] == [2, 3]
    supervisor.stop()
    assert stack.waiting[1].told == ["dropped"]
    supervisor.prepare()
    assert len(stack.waiting) == 2


def test_where_none_can_be_begun_the_run_goes_on(tmp_path: Path, journal: Journal) -> None:
    stack = Cluster()
    stack.standby = full  # type: ignore[method-assign]
    supervisor = supervised(journal, stack)
    supervisor.start(Restart(), lambda number: None)
    supervisor.prepare()
    stack.launched[0].status = KILLED
    until("a cold start", lambda: len(stack.launched) == 2, within_s=60.0)
    supervisor.stop()
    supervisor.healthy()
    (said,) = [event for event in read(tmp_path / "journal.jsonl") if event["what"] == "no standby"]
    assert (said["number"], said["why"]) == (2, "the disk is full")


def full(*given: Any, **more: Any) -> Waiting:
    raise OSError("the disk is full")


@dataclass
class Sleeper:
    """A process of a standby, or an orphan; it may not be touched."""

    name: str

    def alive(self) -> bool:
        return True

    def family(self) -> list[Sleeper]:
        return [self]


@pytest.mark.parametrize("kind", ["kill driver", "crash application", "stop driver", "pause driver"])
def test_a_fault_that_comes_before_the_program_begins_hits_nobody(journal: Journal, kind: str) -> None:
    """And is a miss, so that the next batch is tried."""
    stack = Cluster()
    supervisor = supervised(journal, stack)
    run: Any = SimpleNamespace(
        supervisor=supervisor, stack=stack, own=None, glance=lambda hit: None, look=lambda hit: pytest.fail("a look")
    )
    options: dict[str, Any] = {"for_s": 0.1} if kind == "pause driver" else {}
    do = Fault(kind=kind, impact=Impact.DRIVER_KILLED, options=options)
    step = Step(when=trigger("elapsed", 1.0), do=do)
    done: list[tuple[str, bool, list[str]]] = []

    def hit() -> None:
        found = FAULTS[kind].inject(run, step, TriggerHit(2))
        words = evidence.missed("records", True, found)
        done.append((words, supervisor.alive, [each.name for each in supervisor.living()]))
        assert not supervisor.leftovers()

    supervisor.start(Restart(), lambda number: None, settle=hit)
    supervisor.prepare()
    stack.waiting[0].driver.tree = [Sleeper("the standby")]
    second(supervisor, stack)
    until("the program's session", lambda: supervisor.starts.get(2) is Start.WARM, within_s=60.0)
    supervisor.healthy()
    assert done == [("there was no process to hit", False, ["the standby"])]
    assert [each.name for each in supervisor.processes()] == ["the standby"] and supervisor.alive
    assert supervisor.last_ended_by_fault == 0
    stack.waiting[0].driver.tree = []
    supervisor.stop()


def test_one_that_dies_by_itself_before_it_begins_was_no_attempt(journal: Journal) -> None:
    stack = Cluster(goes=False)
    supervisor = supervised(journal, stack)

    def died() -> None:
        stack.waiting[0].driver.status = 1

    supervisor.start(Restart(), lambda number: None, settle=died)
    supervisor.prepare()
    stack.launched[0].status = KILLED
    until("a cold start", lambda: len(stack.launched) == 2, within_s=60.0)
    supervisor.stop()
    assert [death.number for death in supervisor.deaths] == [1]
    assert stack.launched[1].number == 2
    assert stack.waiting[0].told == ["ready?", "go", "dropped"]


def test_none_is_made_ready_after_one_that_is_dead(journal: Journal) -> None:
    stack = Cluster()
    supervisor = supervised(journal, stack)
    supervisor.start(Restart(max_restarts=0), lambda number: None)
    stack.launched[0].status = KILLED
    supervisor.prepare()
    supervisor.stop()
    assert stack.waiting == []


def test_a_program_that_asked_for_another_session_is_made_ready_no_more(journal: Journal) -> None:
    stack = Cluster()
    supervisor = supervised(journal, stack)
    supervisor.start(Restart(), lambda number: None)
    assert supervisor.unprepared
    # Nor after one that began cold since then.
    supervisor.starts[0] = Start.FRESH
    assert not supervisor.unprepared
    supervisor.prepare()
    assert not stack.waiting
    supervisor.stop()


def test_a_stack_that_cannot_has_none(journal: Journal) -> None:
    stack = Cluster()
    plain: Any = SimpleNamespace(launch=stack.launch, executors=stack.executors, processes=stack.processes)
    supervisor = supervised(journal, plain)
    supervisor.start(Restart(), lambda number: None)
    supervisor.prepare()
    stack.launched[0].status = KILLED
    until("a cold start", lambda: len(stack.launched) == 2, within_s=60.0)
    supervisor.stop()
    assert not stack.waiting
