"""ResourceManager and NodeManager as child processes on loopback.

ResourceManager writes down what it knows (FileSystemRMStateStore), so that it comes back with its applications.
NodeManager does not: its own recovery needs a library that Hadoop does not bring, so it comes back without containers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import time
from typing import Any

from harness.components.hadoop.daemon import START_S, Daemon, HadoopRuntime
from harness.components.yarn import settings
from harness.components.yarn.rest_api import Manager, Node
from harness.hosts import signals
from harness.hosts.local import LocalProcess, processes
from harness.machine.jars import spark_home
from harness.machine.java import Java
from harness.session import reaper
from harness.session.session import Session

PACKAGE = "org.apache.hadoop.yarn.server"
HEAP = "-Xmx384m"


class YarnDaemon(Daemon):
    """One that can be killed alone: what a NodeManager has started lives on. `joined` says whether the node has joined
    since a moment, in milliseconds since 1970."""

    def __init__(self, runtime: HadoopRuntime, *, joined: Callable[[int], bool], **options: Any) -> None:
        super().__init__(runtime, ready=lambda: joined(self._begun_ms), heap=HEAP, **options)
        self._begun_ms = 0
        self.held = False
        """Whether one that comes back is stopped at once. The code that sets this stops the one that is there, and
        continues it."""

    def spawn(self, words: Sequence[str] = ()) -> None:
        """Start it; returns at once. Raises StackError where another program has its port."""
        self._begun_ms = int(time() * 1000)
        super().spawn(words)

    def await_ready(self, *, within_s: float = START_S) -> None:
        """Return when it is ready, and stands still if it is held. Raises StackError, at once if it ends."""
        super().await_ready(within_s=within_s)
        if self.held:
            signals.freeze(self.itself())

    def stop(self, *, grace_s: float = 0.0) -> None:
        """SIGKILL to it alone; from here on its absence is no error."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(10.0)

    @property
    def gone(self) -> bool:
        """Return whether it has ended, and no fault has killed it. Then nothing starts it again."""
        return self._process is not None and self._process.poll() is not None

    def itself(self) -> list[LocalProcess]:
        """Return its process; nothing while it does not run."""
        found = reaper.identify(self._process.pid) if self._process is not None else None
        return processes([found] if found else [])


class Yarn:
    """`logs` is where daemons write, and where containers have a folder each."""

    master = "yarn"

    def __init__(self, session: Session, java: Java, *, logs: Path) -> None:
        self.home = spark_home()
        self.folders = settings.Folders(session.folder / "yarn", logs / "executors")
        self._ports = settings.ports()
        self._session, self._logs = session, logs
        self.manager, self.node = Manager(str(self._ports["manager-web"])), Node(str(self._ports["node-web"]))
        runtime = HadoopRuntime(session=session, java=java, conf=self.folders.conf, work=self.folders.root / "tmp")
        manager = self.manager
        self.resourcemanager = YarnDaemon(
            runtime,
            # One that comes back has no node before one has knocked again. While the harness reads a
            # dead driver's state, NodeManager is stopped: that node knocks later, and no attempt is started meanwhile.
            joined=lambda since: manager.answers() if self.nodemanager.held else manager.node_since_ms() > 0,
            name="resourcemanager",
            main=f"{PACKAGE}.resourcemanager.ResourceManager",
            port=self._ports["scheduler"],
            log=logs / "yarn-resourcemanager.log",
        )
        self.nodemanager = YarnDaemon(
            runtime,
            joined=lambda since: manager.node_since_ms() >= since,
            name="nodemanager",
            main=f"{PACKAGE}.nodemanager.NodeManager",
            port=self._ports["nodemanager"],
            log=logs / "yarn-nodemanager.log",
        )

    @property
    def daemons(self) -> Mapping[str, YarnDaemon]:
        """By name."""
        return {each.name: each for each in (self.resourcemanager, self.nodemanager)}

    def start(self) -> None:
        """Start both and return when the node has joined. Raises StackError."""
        for folder in (self.folders.root, self.folders.local, self.folders.state):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folders.logs.mkdir(parents=True, exist_ok=True)
        settings.write(self.folders, self._ports, self._session.id)
        for daemon in self.daemons.values():
            daemon.spawn()
        for daemon in self.daemons.values():
            daemon.await_ready()

    def check(self) -> None:
        """Raise StackError if one of them is dead that no fault has killed."""
        for daemon in self.daemons.values():
            daemon.check()

    def close(self) -> None:
        """Give the ports back; ending the processes is the session's work."""
        for port in self._ports.values():
            port.release()
