"""One Hadoop daemon as a child process: a JVM with the jars that all of them share, on a folder of settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import StackError
from harness.hosts import service
from harness.hosts.ports import Port
from harness.hosts.server_process import ServerProcess
from harness.machine import jars
from harness.machine.java import Java
from harness.session.session import Session

START_S = 180.0
HEAP = "-Xmx256m"
# What Hadoop 3.4 reaches into of a newer Java.
OPENED = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.dns=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
)


@dataclass(frozen=True, kw_only=True)
class HadoopRuntime:
    """What a daemon runs with: `conf` holds its settings, `work` is where it may write, `more` are jars besides
    Hadoop's."""

    session: Session
    java: Java
    conf: Path
    work: Path
    more: tuple[Path, ...] = ()

    def command(self, main: str, *words: str, heap: str = HEAP) -> list[str]:
        """Return how a main class of Hadoop's is run. Raises StackError where its jars cannot be had."""
        found = class_path(self.java)
        flags = [heap, *service.JVM, *OPENED, "-Djava.awt.headless=true", f"-Djava.io.tmpdir={self.work}"]
        flags += [f"-Dhadoop.log.dir={self.work}", "-cp", os.pathsep.join(map(str, (self.conf, *found, *self.more)))]
        return [str(self.java.executable), *flags, main, *words]

    def finish(self, main: str, *words: str, log: Path, within_s: float = START_S) -> None:
        """Run a tool of Hadoop's to its end. Raises StackError with the end of its log unless it exits with 0."""
        name = main.rpartition(".")[2]
        service.finish(self.session, self.command(main, *words), name=name, log=log, within_s=within_s)


@cache
def class_path(java: Java) -> tuple[Path, ...]:
    """Return the jars, 104 MB, checked once by each harness: a daemon is started again while a pipeline waits for it.
    Raises StackError."""
    return jars.fetched("hadoop", java)


class Daemon(ServerProcess):
    """`name` is what people call it (`namenode`), `main` its main class, `port` where clients and daemons reach it;
    `ready` is asked again and again until it answers as the one that was started, and is content."""

    def __init__(
        self,
        runtime: HadoopRuntime,
        *,
        name: str,
        main: str,
        port: Port,
        log: Path,
        ready: Callable[[], Any],
        heap: str = HEAP,
    ) -> None:
        self._session, self._port = runtime.session, port
        self.runtime, self.name, self.log = runtime, name, log
        self._main, self._ready, self._heap = main, ready, heap

    @property
    def alive(self) -> bool:
        """Return whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self, words: Sequence[str] = ()) -> None:
        """Start it and return when it is ready. Raises StackError."""
        self.spawn(words)
        self.await_ready()

    def spawn(self, words: Sequence[str] = ()) -> None:
        """Start it; returns at once. Raises StackError where another program has its port."""
        if self._port.open():
            raise StackError(f"{self._port} was asked for the {self.name}, but another program listens there")
        self.runtime.work.mkdir(mode=0o700, parents=True, exist_ok=True)
        env = service.environment(JAVA_HOME=str(self.runtime.java.home))
        command = self.runtime.command(self._main, *words, heap=self._heap)
        self._process = self._session.spawn(command, name=self.name, log=self.log, env=env, cwd=self.runtime.work)

    def await_ready(self, *, within_s: float = START_S) -> None:
        """Return when it is ready. Raises StackError, at once if it ends."""
        if self._process is None:
            raise StackError(f"the {self.name} was asked whether it is ready, and is not started")
        service.ready(self.name, self._process, self.log, self._ready, within_s=within_s)
