"""The stack `external`: components and a Spark that are already there. The drivers are ours and run on this machine.

Nothing is touched that was not made here: each run has parts of its own (a topic, a schema) and a folder, and they are
dropped after it, by the session's reaper if the harness is gone by then (`python -m harness.stacks.external FILE`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness import failpoint
from harness.component import Addressed, AtAddress, Server, able
from harness.components.spark import driver_process
from harness.errors import StackError, UsageError
from harness.fields.own_kinds import conftest_of, load_conftest
from harness.hosts.local import LocalProcess, carrying
from harness.hosts.ports import HOST
from harness.machine import class_data, jars, java
from harness.machine.spark_home import spark_home
from harness.resources import Parts, RunResources, component_of, components
from harness.scenario import Pipeline
from harness.session.session import Session
from harness.stack import MEANS, Driver
from harness.stacks.addresses import AT, Where, missing
from harness.stacks.base import SessionStack
from harness.stacks.provision import Made, Provision, drop

ANSWER_S = 10.0
MASTER = 7077


class ExternalStack(SessionStack):
    """A cluster that is not ours: faults hit the drivers alone."""

    name = "external"
    means = MEANS["external"]

    def __init__(self, where: Where, logs: Path, *, needs: Collection[str] = ()) -> None:
        """Raises UsageError for an address that is none, and where a component has none."""
        super().__init__(logs, needs=needs)
        self.where = where
        self._host, self._port = master_of(where.spark_master)
        self._there: dict[str, Addressed] = {name: _at(name, address) for name, address in where.at.items()}
        self._lacks(needs)

    def up(self) -> None:
        """Look that each answers. Raises StackError with the first that does not."""
        self._ready()
        self._java = java.find()
        self._jars = jars.resolve(self._java)
        try:
            self.servers |= self._add(self._needs)
            self._spark()
            self._session = Session()
        except BaseException:
            self._close()
            raise

    def _add(self, names: Collection[str]) -> Mapping[str, Server]:
        self._lacks(names)
        for name in names:
            self._there[name].describe()
        return {name: self._there[name] for name in names}

    def _lacks(self, names: Collection[str]) -> None:
        if lacking := [name for name in names if name not in self._there]:
            raise missing(lacking)

    def _spark(self) -> None:
        """Look that its master answers. Raises StackError."""
        try:
            with socket.create_connection((self._host, self._port), timeout=ANSWER_S) as connection:
                # As the machine that the master sees knocking, unless we were told better.
                self._ours = self.where.driver_host or str(connection.getsockname()[0])
        except OSError as error:
            raise StackError(
                f"asked for a Spark master at {self.where.spark_master}; nobody is there: {error}"
            ) from error

    def provide(self, run_id: str, parts: Parts, *, root: Path | None = None) -> RunResources:
        """Make the parts of one run and its folder. Raises StackError; then nothing of it is left."""
        self.ensure(components(parts))
        self._made[run_id] = self._provision().named(run_id, parts, root=root)
        # Before anything is made: whoever is left alive then drops it.
        self._remember()
        try:
            return super().provide(run_id, parts, root=root)
        except BaseException:
            self._drop(run_id)
            raise

    def release(self, own: RunResources, *, keep: bool = False) -> None:
        """Drop what `provide` made; `keep` leaves it for good: it is on servers that go on."""
        if self._session is None:
            return
        if keep:
            self._made.pop(own.run_id, None)
            self._remember()
        else:
            self._drop(own.run_id)

    def _drop(self, run_id: str) -> None:
        """Raises StackError; then the session's end tries again."""
        made = self._made.get(run_id)
        if made is not None:
            self._provision().drop(made)
            del self._made[run_id]
            self._remember()

    def _remember(self) -> None:
        """Tell the session's reaper what it would have to drop."""
        session, at = self._up(), {name: self._there[name].address for name in self.servers}
        path = session.keep("made.json", json.dumps(remembered(at, self._made.values()), default=str))
        argv = [sys.executable, "-m", "harness.stacks.external", str(path)]
        env = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(Path(__file__).parents[2])}
        session.at_the_end(json.dumps({"argv": argv, "env": env}))

    def launch(self, own: RunResources, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one attempt of the driver. Its placeholders are already filled in."""
        return driver_process.launch(self._up(), own, pipeline, self._machine(), number=number, log=log)

    def conf(self, own: RunResources, pipeline: Pipeline) -> dict[str, str]:
        """What a driver is given besides the pipeline's own `conf`. Holds no secret."""
        found = driver_process.settings(own, pipeline, self._machine(), 1)
        return {"spark.driver.memory": driver_process.MEMORY, **found}

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
        """The failpoints, for executors on which nothing of ours is installed."""
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
        """Every living process of this run's drivers, or of one attempt's."""
        return carrying(*driver_process.marks(own, attempt))

    def health(self) -> None:
        """Raise StackError if our own session is in trouble; the cluster's health is its owner's."""
        self._up().guard()

    def describe(self, components: Collection[str] = ()) -> dict[str, Any]:
        """Addresses without secrets, and what was seen there, for run.json."""
        session = self._up()
        return {
            "stack": self.name,
            "asked": self._asked(),
            "session": session.id,
            "reapers_replaced": session.rearmed,
            "java": self._java.text,
            "jars": self._jars.digest,
            **self._described(components),
            "spark": {"at": self.where.spark_master, "driver_host": self._ours},
        }

    def _asked(self) -> str:
        """What a command line says to get this cluster; the password is the reader's own (PGPASSWORD)."""
        said = [(AT, f"{name}={server.plain}") for name, server in self._there.items()]
        said += [(name, value) for name, value in asdict(self.where).items() if name != AT and value]
        given = (f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in said)
        return " ".join([f"--stack {self.name}", *given])

    def down(self) -> None:
        """End our drivers and drop what is left of our runs. Safe to call twice."""
        session = self._session
        if session is None:
            return
        # Whatever of it fails, the rest is done; what could not be dropped is tried once more by the session's end.
        with contextlib.ExitStack() as steps:
            steps.callback(session.close)
            steps.callback(self._forget, session)
            for run_id in list(self._made):
                steps.callback(self._drop, run_id)

    def _forget(self, session: Session) -> None:
        if not self._made:
            session.nothing_left()
        self._session = None
        self._close()

    def _close(self) -> None:
        for server in self._there.values():
            server.close()

    def _provision(self) -> Provision:
        return Provision(
            servers=self.servers,
            spark_master=self.where.spark_master,
            spark_home=spark_home(),
            root=(self.where.shared_dir or self._up().folder) / "runs",
            lasting=True,
        )


def _at(name: str, address: str) -> Addressed:
    """The component that is there. Raises UsageError for an address that is none."""
    found: Addressed = able(name, AtAddress, "cannot be used where it is").at(address)
    return found


def master_of(url: str) -> tuple[str, int]:
    """Host and port of `spark://host:port`. Raises UsageError."""
    parts = urlsplit(url)
    try:
        port = parts.port or MASTER
    except ValueError:
        port = 0
    if parts.scheme != "spark" or not port or "@" in url or not HOST.fullmatch(parts.hostname or ""):
        raise UsageError(f"--spark-master must be spark://HOST:PORT{_not(url)}")
    return str(parts.hostname), port


def _not(given: str) -> str:
    """What was given instead; not where it may hold a password."""
    return "; what was given has an @" if "@" in given else f", not {given!r}"


def remembered(at: Mapping[str, str], made: Collection[Made]) -> dict[str, Any]:
    """What `main` has to be told: it runs in no repository, so also where the kinds of these runs are registered."""
    conftests = {conftest_of(each.root or Path.cwd()) for each in made} - {None}
    return {"at": at, "conftests": list(conftests), "path": sys.path, "made": [asdict(each) for each in made]}


def main(path: Path) -> int:
    """Drop what a dead session had made, each by itself; how much of it could not be dropped."""
    said = json.loads(path.read_text(encoding="utf-8"))
    made = [Made(run_id=e["run_id"], labels=tuple(e["labels"]), folder=Path(e["folder"])) for e in said["made"]]
    failures: list[Exception] = []
    servers: dict[str, Addressed] = {}
    sys.path += [entry for entry in said.get("path", ()) if entry not in sys.path]
    for conftest in said.get("conftests", ()):
        with _noted([]):
            load_conftest(Path(conftest))
    for name in components(label for each in made for label in each.labels):
        with _noted(failures):
            servers[name] = _at(name, said["at"][name])
    for each in made:
        with _noted(failures):
            drop(
                replace(each, labels=tuple(n for n in each.labels if component_of(n) in servers)), servers, lasting=True
            )
    return len(failures)


@contextlib.contextmanager
def _noted(failures: list[Exception]) -> Iterator[None]:
    """A component of somebody else's may raise anything; what else there is has to be dropped all the same."""
    try:
        yield
    except Exception as failure:
        print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
        failures.append(failure)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
