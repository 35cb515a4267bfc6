"""The stack `processes`: the components and Spark as child processes of the harness. Needs no Docker and no root."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

from harness.components.spark import driver_process, standby
from harness.components.spark import standalone_processes as standalone
from harness.components.spark.standbys import Standbys
from harness.hosts.local import LocalProcess, carrying, processes
from harness.machine import class_data, jars
from harness.machine.spark_home import UNSIGNED
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.scenario.progress import DSTREAMS
from harness.session import reaper
from harness.session.session import Session
from harness.stack import MEANS, Driver
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

    def check(self) -> None:
        """Raise StackError if one of them is dead."""

    def close(self) -> None:
        """Give back what is ours."""


class ProcessesStack(ChildProcessesStack):
    """One of each component, on ports of its own. `logs` is where they write, `needs` are those that come up with it.

    `executors` is how many a pipeline may ask for. Without `tuned` drivers and executors run with a JVM's default
    flags: slower, the same otherwise; for measurements."""

    name = "processes"
    means = MEANS["processes"]
    spark: Cluster

    def __init__(self, logs: Path, *, needs: Collection[str] = (), executors: int = 2, tuned: bool = True) -> None:
        super().__init__(logs, needs=needs, tuned=tuned)
        self._executors = executors
        self._standbys = Standbys()
        self._inheriting: dict[str, tuple[int, reaper.ProcessId | None]] = {}
        """By run, the newest attempt of a program of DStreams, and its driver."""

    def _runs_drivers(self, session: Session) -> standalone.Spark:
        self.spark = daemons = self._spark(session)
        return daemons

    def _kept(self) -> list[Cluster]:
        return [self.spark] if hasattr(self, "spark") else []

    def _forget(self) -> None:
        self.__dict__.pop("spark", None)

    def _provision(self) -> Provision:
        return Provision(
            servers=self.servers,
            spark_master=self.spark.master,
            spark_home=self.spark.home,
            root=self._up().folder / RUNS,
        )

    def launch(self, own: RunResources, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one attempt of the driver. Its placeholders are already filled in."""
        driver = driver_process.launch(self._up(), own, pipeline, self._machine(), number=number, log=log)
        if pipeline.progress == DSTREAMS:
            self._inheriting[own.run_id] = number, reaper.identify(driver.process.pid)
        return driver

    def conf(self, own: RunResources, pipeline: Pipeline) -> dict[str, str]:
        """What a driver is given besides the pipeline's own `conf`. Holds no secret."""
        found = driver_process.settings(own, pipeline, self._machine(), 1)
        return {"spark.driver.memory": driver_process.MEMORY, **found}

    def _machine(self) -> driver_process.Machine:
        return driver_process.Machine(
            java=self._java,
            jars=self._jars,
            flags=self._flags[class_data.Kind.DRIVER],
            executor_flags=self._flags[class_data.Kind.EXECUTOR],
        )

    def executors(self, own: RunResources, *, attempt: int | None = None) -> list[LocalProcess]:
        """The executor processes of this run's applications, oldest first."""
        found = self.spark.executors(*driver_process.marks(own, attempt))
        return self._standbys.seen(own, processes([*found, *self._inherited(own, attempt)]))

    def processes(self, own: RunResources, *, attempt: int | None = None) -> list[LocalProcess]:
        """Every living process of this run's pipeline that began with its mark. A JVM whose program died by itself has
        no parent that tells."""
        found = carrying(*driver_process.marks(own, attempt))
        return self._standbys.seen(own, [*found, *processes(self._inherited(own, attempt))])

    def _inherited(self, own: RunResources, attempt: int | None) -> list[reaper.ProcessId]:
        """The executors of an attempt that bear the mark of an earlier one: a program of DStreams takes over their
        environment with the settings in its checkpoint. What was started before the attempt's driver is none of it."""
        number, driver = self._inheriting.get(own.run_id, (0, None))
        if attempt is None or attempt != number or driver is None:
            return []
        marked = self.spark.executors(*driver_process.marks(own, attempt))
        every = self.spark.executors(*driver_process.marks(own, None))
        return [each for each in every if each.start >= driver.start and each not in marked]

    def standby(
        self, own: RunResources, pipeline: Pipeline, *, after: Driver, log: Path
    ) -> standby.StandbyDriver | None:
        """A driver for the attempt after `after`, which is one of ours; None without tuning, which is for measurements,
        and where the settings of that attempt do not show."""
        machine, number = self._machine(), after.number + 1
        conf = driver_process.settings(own, pipeline, machine, after.number)
        asked = standby.asked(own, pipeline, conf, standby.submitted(after)) if self._tuned else None
        if asked is None:
            return None
        folder = standby.made_folder(self._up().folder, asked)
        command = standby.command(folder, pipeline)

        def begin() -> Driver:
            return driver_process.launch(self._up(), own, pipeline, machine, number=number, log=log, standby=command)

        return self._standbys.make(own, number, folder, begin, lambda driver: None)

    def release(self, own: RunResources, *, keep: bool = False) -> None:
        """Drop what `provide` made; `keep` leaves it until the stack goes down."""
        self._standbys.forget(own.run_id)
        super().release(own, keep=keep)

    def describe(self, components: Collection[str] = ()) -> dict[str, Any]:
        """Versions and settings, for run.json. Holds no secret."""
        spark = {
            "home": self.spark.home.name,
            "unsigned": [*UNSIGNED] if self._tuned else [],
            "cores": self.spark.cores,
            "settings": dict(standalone.SETTINGS),
        }
        return self._versions(components, spark)

    def _spark(self, session: Session) -> standalone.Spark:
        flags = self._flags[class_data.Kind.DAEMON]
        home = None if self._tuned else jars.spark_home()
        return standalone.Spark(session, self._java, logs=self.logs, executors=self._executors, flags=flags, home=home)
