"""What the stacks have in common whose components are child processes of the harness: how they come up with what runs
the drivers, what is asked of them meanwhile, how they go down."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

from harness.component import AsProcesses, Started, able
from harness.hosts.in_parallel import together
from harness.hosts.processes import ProcessHost
from harness.machine import agent, class_data, java, spark_versions
from harness.run_folder.redact import redact_folder
from harness.session.session import Session
from harness.stacks.base import StartingStack


class Part(Protocol):
    """What is asked of a server as of what runs the drivers."""

    def check(self) -> None:
        """Raise StackError if it is dead that no fault struck."""

    def close(self) -> None:
        """Give back what is ours."""


class Starts(Part, Protocol):
    """What runs the drivers."""

    def start(self) -> None:
        """Return when it answers. Raises StackError."""


class ChildProcessesStack(StartingStack):
    """One of each component, each on its own ports. `logs` is where they write, `needs` are those that come up with it.
    Without `tuned` JVMs run with their default flags."""

    training = "harness.training.processes"

    def __init__(self, logs: Path, *, needs: Collection[str] = (), tuned: bool = True) -> None:
        super().__init__(logs, needs=needs)
        self._tuned = tuned
        self._flags: dict[class_data.Kind, tuple[str, ...]] = {}

    def _prepare(self) -> None:
        self._java = java.find()
        spark_versions.fits(spark_versions.own(), self._java)
        self._jars = agent.resolve(self._java)
        self._flags = {
            kind: class_data.flags(kind, self._java, self._jars) if self._tuned else () for kind in class_data.Kind
        }

    def _start(self, session: Session) -> None:
        runs_drivers = self._runs_drivers(session)
        made = self._made_of(self._needs)
        together([*(server.start for server in made.values()), runs_drivers.start])
        self.servers |= made

    @abstractmethod
    def _runs_drivers(self, session: Session) -> Starts:
        """Return what runs the drivers, kept from here on and not yet started. Raises StackError."""

    @abstractmethod
    def _kept(self) -> Sequence[Part]:
        """Return the same; nothing before it is there."""

    @abstractmethod
    def _forget(self) -> None:
        """It has ended."""

    def _server(self, name: str) -> Started:
        host = ProcessHost(session=self._up(), logs=self.logs, java=self._java, jars=self._jars, flags=self._flags)
        made: Started = able(name, AsProcesses, "does not run as child processes").as_processes(host)
        return made

    def _parts(self) -> list[Part]:
        return [*self._started.values(), *self._kept()]

    def health(self) -> None:
        """Raise StackError, naming the part and its log's last lines, if a part died that no fault struck."""
        self._up().guard()
        for part in self._parts():
            part.check()

    def _versions(
        self, components: Collection[str], spark: dict[str, Any], *, options: str = "", **more: Any
    ) -> dict[str, Any]:
        """Return the same with the JVM flags; `more` comes before these."""
        return {
            **self._common(components, spark, options=options, java=self._java.text),
            **more,
            "flags": {kind.value: list(flags) for kind, flags in self._flags.items()},
        }

    def down(self) -> None:
        """End everything that this stack started. Safe to call twice."""
        session, self._session = self._session, None
        if session is None:
            return
        # Before its server dies, or a client goes on knocking.
        for part in self._parts():
            part.close()
        session.close()
        # A pipeline that fails may have written its login into the logs of its executors.
        redact_folder(self.logs, tuple(self._secrets))
        self.servers, self._started = {}, {}
        self._forget()
