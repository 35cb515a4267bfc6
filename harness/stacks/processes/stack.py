"""The stack `processes`: the components and Spark as child processes of the harness. Needs no Docker and no root."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import StackError
from harness.hosts.local import LocalProcess, carrying, processes
from harness.machine import class_data, spark_versions
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.scenario.progress import DSTREAMS
from harness.session import reaper
from harness.session.session import Session
from harness.spark import driver_process
from harness.spark import standalone_processes as standalone
from harness.spark.other_version import OtherVersion, other_version
from harness.spark.settings import OF_SESSION, inherited
from harness.stack import PROMISED_CORES, Change, Driver
from harness.stacks.base import RUNS
from harness.stacks.base.child_processes import ChildProcessesStack
from harness.stacks.provision import Provision

if TYPE_CHECKING:
    from harness.stacks.processes.shared import SharedSpark


class ProcessesStack(ChildProcessesStack):
    """One of each component, each on its own ports. `logs` is where they write, `needs` are those that come up with it.

    Without `tuned` drivers and executors run with a JVM's default flags: slower, the same otherwise; for
    measurements."""

    name = "processes"
    spark: standalone.Spark | SharedSpark
    """The master and the worker that its drivers use."""

    def __init__(self, logs: Path, *, needs: Collection[str] = (), tuned: bool = True) -> None:
        super().__init__(logs, needs=needs, tuned=tuned)
        self._others: dict[str, OtherVersion] = {}
        """Those that were needed, also one that never came up: it may have ports to give back."""
        self._inheriting: dict[str, tuple[int, reaper.ProcessId | None]] = {}
        """By run, the newest attempt of a program of DStreams, and its driver."""

    def _runs_drivers(self, session: Session) -> standalone.Spark:
        flags = self._flags[class_data.Kind.DAEMON]
        self.spark = daemons = standalone.Spark(session, self._java, logs=self.logs, flags=flags)
        return daemons

    def _kept(self) -> list[standalone.Spark | SharedSpark]:
        return [*([self.spark] if hasattr(self, "spark") else []), *(each.cluster for each in self._others.values())]

    def _forget(self) -> None:
        self.__dict__.pop("spark", None)
        self._others = {}

    @property
    def spark_versions(self) -> dict[str, dict[str, Any]]:
        """What run.json records of each other Spark version that is up, by name."""
        return {name: version.describe() for name, version in self._others.items()}

    def need(self, versions: Collection[str]) -> None:
        """Start those Spark versions that are not up yet. Raises StackError."""
        with self._adding:
            for name in dict.fromkeys(versions):
                if name not in self._others:
                    self._others[name] = other_version(
                        name,
                        self._up(),
                        self._java,
                        logs=self.logs,
                        tuned=self._tuned,
                    )
                    self._others[name].start()

    def _other(self, pipeline: Pipeline) -> OtherVersion | None:
        """Return the other Spark version that the pipeline names, or None for the installed one. Raises StackError if
        it is not up."""
        if not spark_versions.is_other(pipeline.spark):
            return None
        if pipeline.spark not in self._others:
            raise StackError(f"asked for a driver of Spark {pipeline.spark}; the stack has none up")
        return self._others[pipeline.spark]

    def _provision(self) -> Provision:
        return Provision(
            servers=self.servers,
            spark_master=self.spark.master,
            spark_home=self.spark.home,
            root=self._up().folder / RUNS,
        )

    def launch(self, own: RunResources, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one attempt of the driver. Its placeholders are already filled in."""
        other, machine = self._other(pipeline), self._machine(pipeline)
        if other:
            own, pipeline = other.given(own), other.with_own_jars(own, pipeline)
        driver = driver_process.launch(self._up(), own, pipeline, machine, number=number, log=log)
        if pipeline.progress == DSTREAMS:
            self._inheriting[own.run_id] = number, reaper.identify(driver.process.pid)
        return driver

    def changes(self, own: RunResources, pipeline: Pipeline) -> list[Change]:
        """Return what Spark is given besides the pipeline's own settings and variables, for run.json. It holds no
        secret."""
        other = self._other(pipeline)
        own, cluster = (other.given(own), other.cluster) if other else (own, self.spark)
        return driver_process.table(own, pipeline, self._machine(pipeline)) + inherited(
            {reaper.MARKER: OF_SESSION, **cluster.variables()}
        )

    def _machine(self, pipeline: Pipeline) -> driver_process.Machine:
        if (other := self._other(pipeline)) is not None:
            return other.machine
        return driver_process.Machine(
            java=self._java,
            jars=self._jars,
            flags=self._flags[class_data.Kind.DRIVER],
            executor_flags=self._flags[class_data.Kind.EXECUTOR],
        )

    def executors(self, own: RunResources, *, attempt: int | None = None) -> list[LocalProcess]:
        """Return the executor processes of this run's applications, oldest first."""
        found = self._executors_of(*driver_process.marks(own, attempt))
        return processes([*found, *self._inherited(own, attempt)])

    def processes(self, own: RunResources, *, attempt: int | None = None) -> list[LocalProcess]:
        """Return every living process of this run's pipeline that began with its mark. A JVM whose program died by
        itself has no parent that tells."""
        found = carrying(*driver_process.marks(own, attempt))
        return [*found, *processes(self._inherited(own, attempt))]

    def _inherited(self, own: RunResources, attempt: int | None) -> list[reaper.ProcessId]:
        """Return the executors of an attempt that bear the mark of an earlier one: a program of DStreams takes over
        their environment with the settings in its checkpoint. What was started before the attempt's driver is none of
        it."""
        number, driver = self._inheriting.get(own.run_id, (0, None))
        if attempt is None or attempt != number or driver is None:
            return []
        marked = self._executors_of(*driver_process.marks(own, attempt))
        every = self._executors_of(*driver_process.marks(own, None))
        return [each for each in every if each.start >= driver.start and each not in marked]

    def _executors_of(self, *marks: str) -> list[reaper.ProcessId]:
        """Return the executors of any Spark version whose environment holds each of the marks, oldest first."""
        by_version = (other.cluster.executors(*marks) for other in self._others.values())
        found = [*self.spark.executors(*marks), *itertools.chain.from_iterable(by_version)]
        return sorted(found, key=lambda each: each.start)

    def describe(self, components: Collection[str] = ()) -> dict[str, Any]:
        """Return versions and settings, for run.json. Holds no secret."""
        return self._versions(components, {"cores": PROMISED_CORES, "settings": dict(standalone.SETTINGS)})
