"""Azure's blob service as a child process: Azurite, the emulator of its makers, which npm brings on demand.

The connector of Hadoop reaches an emulator at port 10000 alone. So there is one on a machine at a time: who starts one
holds a lock in the cache of its user until it is closed, and the next one of that user waits. A proxy listens there,
through which the pipelines ask; the emulator has another port, at which the harness asks it.

It writes its metadata every five seconds: no fault may kill it, which would lose what it has acknowledged.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

from harness import wait
from harness.components.azure.blob import PORT, emulator
from harness.components.azure.node import program
from harness.components.azure.run_prefix import CONTAINER, Provides
from harness.errors import StackError, WaitError
from harness.hosts import service
from harness.hosts.logs import tail
from harness.hosts.ports import LOOPBACK, Port
from harness.hosts.server_process import ServerProcess
from harness.machine import cache, fetch_progress, jars
from harness.machine.java import Java
from harness.remote.proxy.server import Proxy
from harness.session.session import Session

VERSION = "3.37.0"
MAIN = "node_modules/azurite/dist/src/blob/main.js"
START_S = 120.0
INSTALL_S = 900.0
MEGABYTES = 365
NETWORK = re.compile(r"(https?|no)_proxy|npm_config_.*|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE", re.IGNORECASE)
"""The variables by which npm finds its registry."""
LOCK_S = 1800.0
FREE_S = 30.0
"""How long the emulator of a harness that was killed may hold its port: until that one's reaper has ended it."""


class Azurite(Provides, ServerProcess):
    """One emulator, asked through `service`."""

    name = "azure"

    def __init__(self, session: Session, java: Java, *, logs: Path) -> None:
        self._session, self._java = session, java
        self._node, self._npm = program("node"), program("npm")
        self._held = ExitStack()
        self.folder = session.folder / "azure"
        self.scratch = self.folder / "copies"
        self._inner = Port(what="Azurite")
        self.service = emulator(self._inner.number)
        self.log = logs / "azure.log"

    def start(self) -> None:
        """Wait for the machine's one port, start it there, and return when it names its containers. Raises
        StackError."""
        jars.fetched("spark-azure", self._java)
        main = installed(self._npm, self._session, log=self.log)
        if self._inner.open():
            raise StackError(f"{self._inner} was asked for Azurite, but another program listens there; run again")
        if self.proxy is None:
            self._held.enter_context(alone())
            self._port = free_port()
            self.proxy = Proxy(LOOPBACK, self._inner.number, what="Azurite")
            self.proxy.start(PORT)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        argv = [str(self._node), str(main), "--blobHost", LOOPBACK, "--blobPort", str(self._inner.number)]
        argv += ["--location", str(self.folder / "data"), "--disableTelemetry", "--skipApiVersionCheck", "--silent"]
        self._process = self._session.spawn(
            argv, name=self.name, log=self.log, env=service.environment(HOME=str(self.folder)), cwd=self.folder
        )
        service.ready(self.name, self._process, self.log, self._answers, within_s=START_S)

    def describe(self) -> Mapping[str, Any]:
        """Return its version."""
        return {"version": f"Azurite {VERSION}", "settings": {"port": PORT}}

    def check(self) -> None:
        """Raise StackError if it is dead, or the proxy in front of it has failed."""
        super().check()
        if self.proxy is not None:
            self.proxy.check()

    def close(self) -> None:
        """End the proxy, close the connections, give the ports back, and the lock."""
        self.service.close()
        if self.proxy is not None:
            self.proxy.close()
        if hasattr(self, "_port"):
            super().close()
        self._inner.release()
        self._held.close()

    def _answers(self) -> bool | wait.Waiting:
        try:
            if CONTAINER not in self.service.containers():
                self.service.make_container(CONTAINER)
        except StackError as error:
            return wait.Waiting(str(error))
        return True


@contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of the machine's one emulator. Raises StackError if another run has it for too long."""
    with ExitStack() as held:
        try:
            held.enter_context(wait.locked(port_lock(), within_s=LOCK_S))
        except WaitError as failure:
            words = (
                "another run of onceproof has its Azurite there; let it end first, or put its scenarios into this one"
            )
            raise StackError(
                f"asked for port {PORT}, the only one that Azurite can have; {failure}: {words}"
            ) from failure
        yield


def port_lock() -> Path:
    """Return the file whose lock the one emulator of this machine holds."""
    return cache.folder("azurite") / f".port-{PORT}.lock"


def free_port(number: int = PORT) -> Port:
    """Return the port, once no process listens there. Hold its lock. Raises StackError if one still does after some
    seconds."""

    def free() -> Port | wait.Waiting:
        try:
            port = Port(number, what="Azurite")
        except StackError as error:
            return wait.Waiting(str(error))
        if port.open():
            port.release()
            return wait.Waiting("a program listens there")
        return port

    try:
        return cast(
            Port, wait.until(f"port {number} to be free for Azurite", free, within_s=FREE_S, hint="end who has it")
        )
    except WaitError as error:
        raise StackError(str(error)) from error


def installed(npm: Path, session: Session, *, log: Path) -> Path:
    """Return the emulator's program, fetched once. Raises StackError."""
    home = cache.folder("azurite") / VERSION
    if not home.exists():
        with wait.locked(home.parent / ".lock", within_s=LOCK_S):
            if not home.exists():
                # What a killed harness has begun.
                for left in home.parent.glob(f".{VERSION}.*"):
                    shutil.rmtree(left, ignore_errors=True)
                _install(npm, home, session, log)
    return home / MAIN


def _install(npm: Path, home: Path, session: Session, log: Path) -> None:
    """The emulator is plain JavaScript: no package needs its scripts run."""
    own = {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)}
    with cache.filling(home) as temporary, fetch_progress.shown(f"Azurite {VERSION}", [temporary], MEGABYTES):
        argv = [str(npm), "install", "--prefix", str(temporary), "--ignore-scripts", "--no-audit", "--no-fund"]
        process = session.spawn(
            [*argv, f"azurite@{VERSION}"],
            name="npm", log=log, env=service.environment(HOME=str(Path.home()), **own), cwd=temporary,
        )  # fmt: skip
        try:
            status = process.wait(INSTALL_S)
        except subprocess.TimeoutExpired as error:
            session.end(process)
            raise StackError(f"fetching Azurite took over {INSTALL_S:g} s; check the network, run again") from error
        if status != 0 or not (temporary / MAIN).is_file():
            words = f"cannot fetch azurite {VERSION} by npm; run again with a network"
            raise StackError(f"{words}. {log} ends:\n{tail(log)}")
