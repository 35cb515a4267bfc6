"""The stack `processes`: the components and Spark as child processes of the harness. Needs no Docker and no root."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from harness.errors import StackError
from harness.hosts.local import LocalProcess, carrying, processes
from harness.machine import class_data, spark_lines
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.scenario.progress import DSTREAMS
from harness.session import reaper
from harness.session.session import Session
from harness.spark import driver_process
from harness.spark import standalone_processes as standalone
from harness.spark.other_line import OtherLine, other_line
from harness.spark.settings import OF_SESSION, inherited
from harness.stack import Change, Driver
from harness.stacks.base import RUNS
from harness.stacks.base.child_processes import ChildProcessesStack
from harness.stacks.provision import Provision


class Cluster(Protocol):
    """The master and the worker that its drivers use."""

    @property
    def master(self) -> str:
        """`spark://host:port`."""

    @property
    def home(self) -> Path:
        """The Spark that it runs."""

    @property
    def cores(self) -> int:
        """What the worker may promise."""

    @property
    def worker(self) -> reaper.ProcessId | None:
        """The worker's process; None where it does not run."""

    def executors(self, *marks: str) -> list[reaper.ProcessId]:
        """The executors whose environment holds each of the marks (`NAME=value`), oldest first."""

    def variables(self) -> Mapping[str, str]:
        """Return what executors inherit from the worker."""

    def check(self) -> None:
        """Raise StackError if one of them is dead."""

    def close(self) -> None:
        """Give back what is ours."""


class ProcessesStack(ChildProcessesStack):
    """One of each component, on ports of its own. `logs` is where they write, `needs` are those that come up with it.

    `executors` is how many a pipeline may ask for. Without `tuned` drivers and executors run with a JVM's default
    flags: slower, the same otherwise; for measurements."""

    name = "processes"
    spark: Cluster

    def __init__(self, logs: Path, *, needs: Collection[str] = (), executors: int = 2, tuned: bool = True) -> None:
        super().__init__(logs, needs=needs, tuned=tuned)
        self._executors = executors
        self._lines: dict[str, OtherLine] = {}
        """Those that were needed, also one that never came up: it may have ports to give back."""
        self._inheriting: dict[str, tuple[int, reaper.ProcessId | None]] = {}
        """By run, the newest attempt of a program of DStreams, and its driver."""

    def _runs_drivers(self, session: Session) -> standalone.Spark:
        self.spark = daemons = self._spark(session)
        return daemons

    def _kept(self) -> list[Cluster]:
        return [*([self.spark] if hasattr(self, "spark") else []), *(each.cluster for each in self._lines.values())]

    def _forget(self) -> None:
        self.__dict__.pop("spark", None)
        self._lines = {}

    @property
    def lines(self) -> dict[str, dict[str, Any]]:
        """By name, what is to be told in run.json of each other Spark version that is up."""
        return {name: line.describe() for name, line in self._lines.items()}

    def need(self, lines: Collection[str]) -> None:
        """Start the Spark of those lines that are not up yet. Raises StackError."""
        with self._adding:
            for name in dict.fromkeys(lines):
                if name not in self._lines:
                    self._lines[name] = other_line(
                        name,
                        self._up(),
                        self._java,
                        logs=self.logs,
                        executors=self._executors,
                        tuned=self._tuned,
                    )
                    self._lines[name].start()

    def _line(self, pipeline: Pipeline) -> OtherLine | None:
        """The other line that the pipeline asks for; None for the installed Spark. Raises StackError if it is not
        up."""
        if not spark_lines.is_other(pipeline.spark):
            return None
        if pipeline.spark not in self._lines:
            raise StackError(f"asked for a driver of Spark {pipeline.spark}; the stack has none up")
        return self._lines[pipeline.spark]

    def _provision(self) -> Provision:
        return Provision(
            servers=self.servers,
            spark_master=self.spark.master,
            spark_home=self.spark.home,
            root=self._up().folder / RUNS,
        )

    def launch(self, own: RunResources, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one attempt of the driver. Its placeholders are already filled in."""
        line, machine = self._line(pipeline), self._machine(pipeline)
        if line:
            own, pipeline = line.given(own), line.told(own, pipeline)
        driver = driver_process.launch(self._up(), own, pipeline, machine, number=number, log=log)
        if pipeline.progress == DSTREAMS:
            self._inheriting[own.run_id] = number, reaper.identify(driver.process.pid)
        return driver

    def changes(self, own: RunResources, pipeline: Pipeline) -> list[Change]:
        """What Spark is given besides the pipeline's own settings and variables, for run.json. It holds no secret."""
        line = self._line(pipeline)
        own, cluster = (line.given(own), line.cluster) if line else (own, self.spark)
        return driver_process.table(own, pipeline, self._machine(pipeline)) + inherited(
            {reaper.MARKER: OF_SESSION, **cluster.variables()}
        )

    def _machine(self, pipeline: Pipeline) -> driver_process.Machine:
        if (line := self._line(pipeline)) is not None:
            return line.machine
        return driver_process.Machine(
            java=self._java,
            jars=self._jars,
            flags=self._flags[class_data.Kind.DRIVER],
            executor_flags=self._flags[class_data.Kind.EXECUTOR],
        )

    def executors(self, own: RunResources, *, attempt: int | None = None) -> list[LocalProcess]:
        """The executor processes of this run's applications, oldest first."""
        found = self._executors_of(*driver_process.marks(own, attempt))
        return processes([*found, *self._inherited(own, attempt)])

    def processes(self, own: RunResources, *, attempt: int | None = None) -> list[LocalProcess]:
        """Every living process of this run's pipeline that began with its mark. A JVM whose program died by itself has
        no parent that tells."""
        found = carrying(*driver_process.marks(own, attempt))
        return [*found, *processes(self._inherited(own, attempt))]

    def _inherited(self, own: RunResources, attempt: int | None) -> list[reaper.ProcessId]:
        """The executors of an attempt that bear the mark of an earlier one: a program of DStreams takes over their
        environment with the settings in its checkpoint. What was started before the attempt's driver is none of it."""
        number, driver = self._inheriting.get(own.run_id, (0, None))
        if attempt is None or attempt != number or driver is None:
            return []
        marked = self._executors_of(*driver_process.marks(own, attempt))
        every = self._executors_of(*driver_process.marks(own, None))
        return [each for each in every if each.start >= driver.start and each not in marked]

    def _executors_of(self, *marks: str) -> list[reaper.ProcessId]:
        """The executors of any line whose environment holds each of the marks, oldest first."""
        lines = (each.cluster.executors(*marks) for each in self._lines.values())
        found = [*self.spark.executors(*marks), *(each for line in lines for each in line)]
        return sorted(found, key=lambda each: each.start)

    def describe(self, components: Collection[str] = ()) -> dict[str, Any]:
        """Versions and settings, for run.json. Holds no secret."""
        spark = {
            "cores": self.spark.cores,
            "settings": dict(standalone.SETTINGS),
        }
        return self._versions(components, spark)

    def _spark(self, session: Session) -> standalone.Spark:
        flags = self._flags[class_data.Kind.DAEMON]
        return standalone.Spark(session, self._java, logs=self.logs, executors=self._executors, flags=flags)
