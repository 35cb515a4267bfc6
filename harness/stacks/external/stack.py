"""The stack `external`: components and a Spark that are already there. The drivers are ours and run on this machine.

The harness touches only what it has made: each run has its own parts (a topic, a schema) and a folder.
"""

from __future__ import annotations

import shlex
import socket
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness import failpoint
from harness.component import Addressed, InSession, Server, component
from harness.errors import StackError, UsageError
from harness.hosts.local import LocalProcess, carrying
from harness.hosts.ports import HOST
from harness.machine import agent, class_data, java
from harness.machine.jars import spark_home
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.session.session import Session
from harness.spark import driver_process
from harness.stack import Change, Driver
from harness.stacks.addresses import AT, Where, missing
from harness.stacks.base import RUNS, of_session
from harness.stacks.lasting import Again, LastingStack, at
from harness.stacks.provision import Provision

ANSWER_S = 10.0
MASTER = 7077


class ExternalStack(LastingStack):
    """A cluster that is not ours: faults strike the drivers alone."""

    name = "external"

    def __init__(self, where: Where, logs: Path, *, needs: Collection[str] = ()) -> None:
        """Raises UsageError for an address that is none, and where a component has none."""
        super().__init__(logs, needs=needs)
        self.where = where
        self._host, self._port = master_of(where.spark_master)
        self._there: dict[str, Addressed] = {name: at(name, address) for name, address in where.at.items()}
        self._lacks(needs)

    def _prepare(self) -> None:
        self._java = java.find()
        self._jars = agent.resolve(self._java)

    def _start(self, session: Session) -> None:
        """Check that each answers. Raises StackError with the first that does not."""
        self.servers |= self._add(self._needs)
        self._spark()

    def _add(self, names: Collection[str]) -> Mapping[str, Server]:
        self._lacks(names)
        own = of_session([name for name in names if name not in self._there], self._up(), self._runs())
        for server in own.values():
            server.start()
        there = {name: self._there[name] for name in names if name not in own}
        for each in there.values():
            each.describe()
        return {**own, **there}

    def _lacks(self, names: Collection[str]) -> None:
        own = [name for name in names if isinstance(component(name), InSession)]
        if lacking := [name for name in names if name not in self._there and name not in own]:
            raise missing(lacking)

    def _runs(self) -> Path:
        return (self.where.shared_dir or self._up().folder) / RUNS

    def _spark(self) -> None:
        """Check that its master answers. Raises StackError."""
        try:
            with socket.create_connection((self._host, self._port), timeout=ANSWER_S) as connection:
                # The address from which the master sees this machine connect, unless the user has named one.
                self._ours = self.where.driver_host or str(connection.getsockname()[0])
        except OSError as error:
            raise StackError(
                f"asked for a Spark master at {self.where.spark_master}; no master answers: {error}"
            ) from error

    def launch(self, own: RunResources, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one attempt of the driver. Its placeholders are already filled in."""
        return driver_process.launch(self._up(), own, pipeline, self._machine(), number=number, log=log)

    def changes(self, own: RunResources, pipeline: Pipeline) -> list[Change]:
        """Return what Spark is given besides the pipeline's own settings and variables, for run.json. It holds no
        secret."""
        return driver_process.table(own, pipeline, self._machine())

    def _machine(self) -> driver_process.Machine:
        flags = class_data.flags(class_data.Kind.DRIVER, self._java, self._jars)
        return driver_process.Machine(
            java=self._java,
            jars=self._jars,
            flags=flags,
            host=self._ours,
            python=self.where.executor_python,
            shipped=self._zip(),
            scratch=self._up().folder / "scratch",
            # A name given by the user may be one that only others see.
            bind="0.0.0.0" if self.where.driver_host else self._ours,
        )

    def _zip(self) -> Path:
        """Return the failpoints, for executors on which nothing of ours is installed."""
        path = self._up().folder / "failpoints.zip"
        if not path.exists():
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("harness/__init__.py", "")
                archive.write(failpoint.__file__, "harness/failpoint.py")
        return path

    def executors(self, own: RunResources, *, attempt: int | None = None) -> Sequence[LocalProcess]:
        """None: executors of a cluster are not processes that we can see or signal."""
        return []

    def processes(self, own: RunResources, *, attempt: int | None = None) -> list[LocalProcess]:
        """Return every living process of this run's drivers, or of one attempt's."""
        return carrying(*driver_process.marks(own, attempt))

    def health(self) -> None:
        """Raise StackError if our own session is in trouble; the cluster's health is its owner's."""
        self._up().guard()

    def describe(self, components: Collection[str] = ()) -> dict[str, Any]:
        """Return addresses without secrets, and what was seen there, for run.json."""
        spark = {"at": self.where.spark_master, "driver_host": self._ours}
        return self._common(components, spark, options=self._options(), java=self._java.text)

    def _options(self) -> str:
        """Return the options that get this cluster, without the password (PGPASSWORD)."""
        pairs = [(AT, f"{name}={server.plain}") for name, server in self._there.items()]
        pairs += [(name, value) for name, value in asdict(self.where).items() if name != AT and value]
        given = (f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in pairs)
        return " ".join([f"--stack {self.name}", *given])

    def _again(self) -> Mapping[str, Again]:
        return {name: ("at", self._there[name].address) for name in self.servers if name in self._there}

    def _end(self) -> None:
        session, self._session = self._up(), None
        try:
            self._close()
        finally:
            session.close()

    def _close(self) -> None:
        for server in self._there.values():
            server.close()

    def _provision(self) -> Provision:
        return Provision(
            servers=self.servers,
            spark_master=self.where.spark_master,
            spark_home=spark_home(),
            root=self._runs(),
            lasting=True,
        )


def master_of(url: str) -> tuple[str, int]:
    """Return host and port of `spark://host:port`. Raises UsageError."""
    parts = urlsplit(url)
    try:
        port = parts.port or MASTER
    except ValueError:
        port = 0
    if parts.scheme != "spark" or not port or "@" in url or not HOST.fullmatch(parts.hostname or ""):
        raise UsageError(f"--spark-master must be spark://HOST:PORT{_not(url)}")
    return str(parts.hostname), port


def _not(given: str) -> str:
    """Return what was given instead; not where it may hold a password."""
    return "; what was given has an @" if "@" in given else f", not {given!r}"
