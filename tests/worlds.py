"""A run around the fake pipeline: a real process tree, a real watch and supervisor, no Spark and no server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from harness.checkers.cells import Row
from harness.context import RunContext
from harness.faults import fault
from harness.history import FaultInjected, FaultMissed, History, Line
from harness.hosts import signals
from harness.hosts.local import LocalProcess
from harness.run.progress.observer import Observer
from harness.run.schedule import Schedule
from harness.run.snapshots import Parts, Snapshots
from harness.run.supervisor import Supervisor
from harness.scenario import CrashPoint, Pipeline, Restart, Sink, Step, StepOutcome, Trigger
from harness.sinks.table import SinkColumn, SinkTable
from harness.spark.driver_process import ProcessDriver
from harness.spark.settings import AGENT
from harness.triggers import trigger
from harness.wait import until
from tests.provided import reader

FAKE = Path(__file__).with_name("fake_pipeline.py")
BATCHES = 7
STEP_S, SLOW_S = 0.03, 0.15
"""How long the fake pipeline waits at each crash point. A busy machine may sleep through both: a test that is about one
crash point holds the pipeline there (`World.play`)."""
WITHIN_S = 120.0
STANDS = {
    CrashPoint.BATCH_PLANNED: "offsets-{}",
    CrashPoint.SINK_COMMITTED: "commits-{}-begun",
    CrashPoint.BATCH_COMMITTED: "commits-{}",
}


SINK = Sink(kind="postgres", target="fake", key=("batch",))


@dataclass
class RunResources:
    folder: Path
    parts: dict[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"


@dataclass
class FakeStack:
    """Launches the fake pipeline as a real process tree; its executors are sleepers."""

    folder: Path
    arguments: tuple[str, ...] = ()
    batches: int = BATCHES
    step_s: float = STEP_S
    helpers: list[LocalProcess] = field(default_factory=list)
    births: list[float] = field(default_factory=list)
    agent: str = ""
    servers: dict[str, Any] = field(default_factory=dict)

    def launch(self, own: Any, pipeline: Pipeline, *, number: int, log: Path) -> ProcessDriver:
        places = [str(self.folder / "checkpoint"), str(self.folder / "sink")]
        java = self.folder / "java"
        if not java.exists():
            java.symlink_to(sys.executable)
        argv = [str(java), str(FAKE), *places, str(self.batches), str(self.step_s), *self.arguments]
        with log.open("ab") as output:
            child = subprocess.Popen(
                argv, stdout=output, stderr=output, env={**os.environ, "FAKE_PYTHON": sys.executable, AGENT: self.agent}
            )
        self.births.append(psutil.Process(child.pid).create_time())
        return ProcessDriver(number, log, child)

    def executors(self, own: Any, *, attempt: int | None = None) -> list[LocalProcess]:
        return [process for process in self.helpers if process.alive() and attempt in (None, self.of(process))]

    def of(self, helper: LocalProcess) -> int:
        """The attempt that a helper is of: the last that was launched before it was born."""
        return sum(born <= helper.born for born in self.births)

    def processes(self, own: Any, *, attempt: int | None = None) -> list[LocalProcess]:
        return self.executors(own, attempt=attempt)


@dataclass
class World:
    world: RunContext
    supervisor: Supervisor
    observer: Observer
    sink: Path
    batches: int
    kept: Path
    holds: Path
    camera: Snapshots
    lines: list[Line]
    children: list[psutil.Popen] = field(default_factory=list)

    def play(
        self, *steps: Step, held: Sequence[Trigger] = (), finish: bool = False, after_s: float = 0.0
    ) -> list[StepOutcome]:
        """Run a schedule to its end, restarts come `after_s`; `finish` lets the pipeline do its last batch too. At each
        crash point of `held` it stands until a step has struck or missed it."""
        for each in held:
            self.hold(each)
        schedule = Schedule(steps, self.world)
        schedule.start()
        self.supervisor.start(Restart(delay_s=after_s), self.attempt)
        try:
            until("the schedule", lambda: schedule.done or schedule.failure, within_s=WITHIN_S)
            schedule.healthy()
            if finish:
                until("the last batch", self.finished, within_s=WITHIN_S)
        finally:
            schedule.stop()
        return schedule.outcomes

    def hold(self, when: Trigger) -> None:
        """Let the pipeline stand there, once."""
        assert when.point is not None
        self.holds.mkdir(exist_ok=True)
        (self.holds / f"{when.query or 'checkpoint'}-{STANDS[when.point].format(when.batch)}").touch()

    def let_go(self, line: Line) -> None:
        """Once a step is over, and once it has missed a batch."""
        if isinstance(line.event, FaultInjected | FaultMissed):
            for held in self.holds.glob("*.held"):
                held.unlink()

    def sleeper(self) -> None:
        """Give the run an executor, born now."""
        self.children.append(psutil.Popen([sys.executable, "-c", "import threading; threading.Event().wait(60)"]))
        self.world.stack.helpers.append(LocalProcess(self.children[-1]))  # type: ignore[attr-defined]

    def attempt(self, number: int) -> None:
        self.observer.attempt = number

    def finished(self) -> bool:
        return self.batches - 1 in self.observer.listing().get("commits", ())

    def copies(self) -> Counter[int]:
        return Counter(int(line) for line in self.sink.read_text().split())


def rows(table: Path) -> SinkTable:
    """The fake sink, a file of batch numbers, as a table of one column."""
    column = SinkColumn(name="batch", type="int", family="number")
    found: list[Row] = [(line,) for line in table.read_text().split()] if table.exists() else []
    return SinkTable(name="fake", kind="postgres", target="fake", columns=(column,), rows=found)


@contextmanager
def world(
    tmp_path: Path,
    *arguments: str,
    batches: int = BATCHES,
    step_s: float = STEP_S,
    snapshots: bool = False,
    agent: bool = False,
) -> Iterator[World]:
    """With `snapshots`, whoever asks for them has to replace what of `harness.run.snapshots` asks a database. With
    `agent` the pipeline reports its operations as the agent in Spark does."""
    folder = tmp_path / "run"
    folder.mkdir()
    history, lines = History(None), list[Line]()
    history.listen(lines.append)
    stack: Any = FakeStack(folder, arguments, batches, step_s)
    own: Any = RunResources(folder)
    supervisor = Supervisor(stack, own, Pipeline(entry="fake"), history=history, logs=tmp_path)
    observer = Observer(folder, reader("topic"), history)
    stack.agent = observer.reports_to if agent else ""
    state: dict[str, World] = {}

    def hopeless() -> str:
        return "all batches are done" if state["world"].finished() else ""

    world = RunContext(
        stack=stack,
        own=own,
        supervisor=supervisor,
        observer=observer,
        history=history,
        sent=lambda: sum(observer.planned().values()),
        in_flight=lambda: "" if state["world"].finished() else "10 records",
        hopeless=hopeless,
        has_progress=lambda: supervisor.alive and observer.has_progress(),
    )
    camera = Snapshots(
        Parts(
            folder=tmp_path / "kept",
            sinks=(SINK,),
            own=own,
            supervisor=supervisor,
            observer=observer,
            history=history,
            sent=lambda: {0: 7},
            position=lambda: None,
            moved=lambda attempt: False,
            start_s=lambda: 20.0,
        )
    )
    world = replace(world, snapshots=camera) if snapshots else world
    state["world"] = World(
        world, supervisor, observer, folder / "sink", batches, tmp_path / "kept", tmp_path / "holds", camera, lines
    )
    history.listen(state["world"].let_go)
    try:
        yield state["world"]
    finally:
        camera.close()
        supervisor.stop()
        observer.close()
        signals.kill(stack.helpers)
        for child in state["world"].children:
            child.wait(WITHIN_S)
        swept(folder)


def swept(folder: Path) -> None:
    """A JVM that was born while its program was killed has no parent by which it could be found."""
    for process in psutil.process_iter(["cmdline"]):
        if str(folder / "sink") in (process.info["cmdline"] or ()):
            process.kill()


def step(when: Trigger, kind: str, **options: Any) -> Step:
    return Step(when=when, do=fault(kind, **options))


def at(point: CrashPoint, batch: int) -> Trigger:
    return trigger("point", point, batch=batch)
