"""The stack `containers`: each component, a Spark master, two workers, and each driver, in one container each."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from harness.component import COMPONENTS, AsContainer, Boxed, HasClient, able
from harness.errors import StackError
from harness.hosts.container import Container
from harness.hosts.engine import Engine, last_log_lines
from harness.hosts.images import Image
from harness.hosts.in_parallel import together
from harness.hosts.local import LocalProcess, carrying, processes
from harness.machine import agent, class_data, jars, java
from harness.resources import RunResources
from harness.run_folder.redact import redact_folder
from harness.run_folder.store import disk
from harness.scenario import Pipeline
from harness.session import reaper
from harness.session.session import Session
from harness.spark import driver_container as driver
from harness.spark import driver_process as local_driver
from harness.spark import standalone_containers as containers
from harness.spark import standalone_processes as spark
from harness.spark.settings import inherited
from harness.stack import PROMISED_CORES, Change, Driver, Process
from harness.stacks.base import RUNS, StartingStack
from harness.stacks.provision import Provision


class ContainersStack(StartingStack):
    """One of each component and two workers, in a separate network. `logs` is where they write, `needs` are those
    that come up with it."""

    name = "containers"
    training = "harness.training.containers"

    def __init__(self, logs: Path, *, needs: Collection[str] = ()) -> None:
        super().__init__(logs, needs=needs)
        self._drivers: dict[str, list[driver.ContainerDriver]] = {}
        """By run."""
        self._launching: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        """By run."""
        self._released: set[str] = set()

    def _prepare(self) -> None:
        self._jars = _with_agent()
        # Of an earlier time: not this one's to take down.
        self.__dict__.pop("engine", None)

    def _start(self, session: Session) -> None:
        self._make(session)
        made = self._made_of(self._needs)
        together([*(server.start for server in made.values()), self.spark.start])
        self.servers |= made
        self._local()

    def _make(self, session: Session) -> None:
        self.engine = Engine(session.id)
        self.engine.have(containers.IMAGE)
        # Before anything is started: the reaper then removes it.
        session.at_the_end(last_log_lines(session.id))
        self.engine.connect()
        (session.folder / RUNS).mkdir()
        self.class_archives = class_data.of_image(self.engine.identity(containers.IMAGE.name), self._jars)
        self._defaults = _defaults(session, self._jars, self.class_archives)
        self.spark = containers.SparkContainers(self.engine, self._defaults, logs=self.logs)

    def _local(self) -> None:
        """Faults read processes, and pipelines read folders: both must be this machine's."""
        if not all(container.visible() for container in self.spark.workers):
            raise StackError(
                "needs an engine whose processes this machine shows and lets us signal. The one that answers runs "
                "elsewhere, or under another user. Use a local engine, or --stack processes"
            )
        found, ours = self.spark.version(), importlib.metadata.version("pyspark")
        if found != ours:
            raise StackError(
                f"asked for {containers.IMAGE.name}; its Spark is {found}, and the pyspark here is {ours}. The "
                f"connector's jars have to match: name an image of {ours} with {containers.IMAGE.variable}, or install "
                f"pyspark {found}"
            )
        clients = [each.client for each in map(COMPONENTS.__getitem__, self._needs) if isinstance(each, HasClient)]
        if clients and not self.spark.workers[0].has(*clients):
            need = f"python3 cannot import {' and '.join(clients)} there; pipelines in Python may need it"
            print(f"onceproof: {containers.IMAGE.name}: {need} (docs/containers.md)", file=sys.stderr)

    def _server(self, name: str) -> Boxed:
        component = able(name, AsContainer, "does not run in a container")
        self.engine.have(component.image)
        made: Boxed = component.as_container(self.engine)
        return made

    def release(self, own: RunResources, *, keep: bool = False) -> None:
        """Drop what `provide` made; `keep` leaves it until the stack goes down."""
        if self._session is None:
            return
        with contextlib.ExitStack() as steps:
            steps.callback(super().release, own, keep=keep)
            # Not while one is being made: it would come to light afterwards.
            steps.enter_context(self._launching[own.run_id])
            self._released.add(own.run_id)
            steps.callback(self._drivers.pop, own.run_id, None)
            self.engine.forget(own.run_id)

    def launch(self, own: RunResources, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one attempt of the driver. Its placeholders are already filled in."""
        self._up().guard()
        with self._launching[own.run_id]:
            if own.run_id in self._released:
                raise StackError(f"asked for a driver of {own.run_id}, which has ended")
            made = driver.launch(
                self.engine, self._defaults, self._jars, own, pipeline, number=number, log=log.absolute()
            )
            self._drivers.setdefault(own.run_id, []).append(made)
        return made

    def changes(self, own: RunResources, pipeline: Pipeline) -> list[Change]:
        """Return what Spark is given besides the pipeline's own settings and variables, for run.json. It holds no
        secret."""
        return driver.table(own, pipeline, self._defaults, self._jars) + inherited(containers.VARIABLES)

    def executors(self, own: RunResources, *, attempt: int | None = None) -> list[LocalProcess]:
        """Return the executor processes of this run's applications, oldest first."""
        return processes(spark.executors_under(self._tops(self.spark.workers), *local_driver.marks(own, attempt)))

    def processes(self, own: RunResources, *, attempt: int | None = None) -> Sequence[Process]:
        """Return every living process of this run's pipeline, or of one attempt: its drivers' containers, and what
        carries its marks elsewhere, a Python worker whose executor is gone too."""
        ours = [each for each in self._drivers.get(own.run_id, ()) if attempt in (None, each.number)]
        mine = [each.container for each in ours if each.container.alive()]
        inside = {process for container in mine for process in container.processes()}
        found = carrying(*local_driver.marks(own, attempt))
        return [*mine, *(process for process in found if process not in inside)]

    def _tops(self, containers: Sequence[Container]) -> set[reaper.ProcessId]:
        found = (reaper.identify(process.pid) for container in containers for process in container.processes()[:1])
        return {each for each in found if each is not None}

    def health(self) -> None:
        """Raise StackError, naming the part and its log's last lines, if a part died that no fault struck."""
        self._up().guard()
        for server in self._started.values():
            server.check()
        for container in self.spark.containers:
            container.check()

    def _containers(self) -> list[Container]:
        boxed = (server.container for server in self._started.values() if isinstance(server, Boxed))
        found = [*boxed, *self.spark.containers]
        return [container for container in found if container is not None]

    def describe(self, components: Collection[str] = ()) -> dict[str, Any]:
        """Return versions and settings, for run.json. Holds no secret."""
        images = {
            image.part: {"name": image.name, "id": self.engine.identity(image.name)}
            for image in self._images(components)
        }
        spark = {"cores": PROMISED_CORES, "workers": len(containers.WORKERS)}
        flags = {
            kind.value: [*class_data.fitted(self.class_archives / f"{kind}.jsa")] for kind in class_data.IN_CONTAINERS
        }
        options, engine = f"--stack {self.name}", self.engine.version
        return {**self._common(components, spark, options=options, engine=engine, images=images), "flags": flags}

    def _images(self, components: Collection[str]) -> list[Image]:
        own = [COMPONENTS[name] for name in sorted(set(components) & set(self.servers))]
        return [*(component.image for component in own if isinstance(component, AsContainer)), containers.IMAGE]

    def down(self) -> None:
        """End everything that this stack started. Safe to call twice."""
        session, self._session = self._session, None
        if session is None:
            return
        # Whatever of it fails, the rest is done; the session's end is the last.
        with contextlib.ExitStack() as steps:
            steps.callback(session.close)
            if hasattr(self, "engine"):
                steps.callback(self._clean, session)
            if hasattr(self, "spark"):
                steps.callback(self._keep_logs)
            for server in self._started.values():
                steps.callback(server.close)

    def _clean(self, session: Session) -> None:
        self.engine.close()
        session.nothing_left()

    def _keep_logs(self) -> None:
        try:
            with disk("keep the logs", self.logs):
                for container in self._containers():
                    (self.logs / f"{container.part}.log").write_text(container.log(), encoding="utf-8")
        finally:
            redact_folder(self.logs, tuple(self._secrets))

    def _provision(self) -> Provision:
        return Provision(
            servers=self.servers,
            spark_master=self.spark.master,
            spark_home=containers.SPARK_HOME,
            root=self._up().folder / RUNS,
            # A fault may take a container off its network.
            agent_file=True,
        )


def _with_agent() -> jars.Jars:
    """Return the jars for Spark, with the agent's among them where this machine has a Java that can compile it. Raises
    StackError."""
    try:
        found = java.find()
    except StackError as failure:
        print(f"onceproof: {failure}; no agent in Spark reports: checkpoints are watched", file=sys.stderr)
        return jars.resolve()
    return agent.resolve(found)


def _defaults(session: Session, found: jars.Jars, made: Path) -> containers.ContainerDefaults:
    """Containers of Spark run as our own user, so that what they write is ours."""
    passwd = session.folder / "passwd"
    uid, gid = os.getuid(), os.getgid()
    # Hadoop asks for the user's name, and an image does not know ours.
    lines = ["root:x:0:0:root:/root:/bin/sh", f"onceproof:x:{uid}:{gid}::/tmp:/bin/sh"]
    passwd.write_text("\n".join(lines[: 1 if uid == 0 else 2]) + "\n")
    folders = {session.folder / RUNS: True, local_driver.package() / "harness": False, made: False}
    folders |= {jar.parent: False for jar in found.spark}
    return containers.ContainerDefaults(user=f"{uid}:{gid}", passwd=passwd, folders=folders, class_archives=made)
