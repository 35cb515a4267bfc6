"""One running container, as something that can be struck, watched and asked for its log."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import time
from typing import Any, TypeVar

import psutil
import requests
from docker.errors import APIError, DockerException, NotFound

from harness import wait
from harness.errors import StackError, WaitError
from harness.hosts.engine import AWAY, AWAY_NOW, Engine, Wanted, engine_errors
from harness.hosts.local import SHELL_SIGNAL, LocalProcess, exit_status
from harness.hosts.logs import ENOUGH, ending

Seen = TypeVar("Seen")
GONE = SHELL_SIGNAL + signal.SIGKILL
"""What a container that was removed is taken to have ended with."""
TRIES, PAUSE_S = 20, 0.5
START_S = 120.0
AWAY_S = 10
# Everybody inside but the first process, and this shell, which says by its status whether the server is gone.
KILL = f"""touch {AWAY} && kill -9 -1; tried=0
until [ -e {AWAY_NOW} ] || [ $tried -ge {AWAY_S * 20} ]; do tried=$((tried + 1)); sleep 0.05; done
[ -e {AWAY_NOW} ]"""
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""As in the stack `processes`: a short life made short; it changes nothing else."""


class InContainer:
    """What servers in a container have in common; each starts in its own way, by `_up`."""

    container: Container | None = None
    _engine: Engine

    def _up(self, wanted: Wanted) -> Container:
        """Start its container; or, after `stop`, the server in it, on its data and at its addresses. Raises
        StackError."""
        if self.container is None:
            self.container = Container(self._engine, replace(wanted, stays=True))
        else:
            self.container.come_back()
        return self.container

    def stop(self) -> None:
        """SIGKILL to the server; its container stays, so that `start` brings it back. Until then its absence is no
        error. Raises StackError."""
        if self.container is not None:
            self.container.go_away()

    def check(self) -> None:
        """Raise StackError with the end of its log if it has ended."""
        if self.container is not None:
            self.container.check()

    def close(self) -> None:
        """Nothing is held."""


class Container:
    """A container of ours. Its end is waited for in a thread, so that asking whether it lives costs nothing."""

    def __init__(self, engine: Engine, wanted: Wanted) -> None:
        self.part = wanted.name
        self.born = time()
        self._engine, self._address = engine, ""
        self._container: Any = engine.start(wanted)
        self._status: int | None = None
        self._lost = ""
        self._watch = threading.Thread(target=self._wait, name=f"wait-{wanted.name}", daemon=True)
        self._watch.start()

    def _wait(self) -> None:
        """A connection that breaks says nothing about the container: it is asked again, and never called ended."""
        pause = threading.Event()
        for _ in range(TRIES):
            try:
                self._status = int(self._container.wait()["StatusCode"])
            except NotFound:
                self._status = GONE
            except (DockerException, requests.RequestException) as error:
                self._lost = str(error)
                pause.wait(PAUSE_S)
                continue
            return

    @property
    def name(self) -> str:
        """How evidence names it."""
        return f"container {self._container.name}"

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it runs. Raises StackError when the engine no longer tells."""
        if self._status is None:
            if not self._watch.is_alive():
                raise StackError(f"the engine no longer tells about {self.name}: {self._lost}")
            return None
        return exit_status(self._status)

    def send(self, what: signal.Signals) -> bool:
        """Signal its first process; to stop and to go on, the whole of it. False if it is gone. Raises StackError."""
        verb = {signal.SIGSTOP: "pause", signal.SIGCONT: "unpause"}.get(what)
        with engine_errors(f"asked the engine to send {what.name} to {self.name}"):
            try:
                getattr(self._container, verb)() if verb else self._container.kill(signal=what.name)
            except NotFound:
                return False
            except APIError as error:
                # Refused: it has ended, or it is paused or running already.
                if error.status_code not in (409, 500):
                    raise
                return bool(verb) and self._state() == ("paused" if verb == "pause" else "running")
        return True

    def _state(self) -> str:
        """`running`, `paused` or what else the engine says; empty once it is removed. Raises StackError."""
        with engine_errors(f"asked for the state of {self.name}"):
            try:
                self._container.reload()
            except NotFound:
                return ""
            return str(self._container.status)

    def cut(self) -> bool:
        """Take it off the session's network; False if it is gone. Raises StackError."""
        if not self.alive():
            return False
        self._address = self._engine.cut(self._container)
        return True

    def join(self) -> bool:
        """Put it back, under the same name and address; False if it is gone. Raises StackError."""
        if not self.alive():
            return False
        self._engine.join(self._container, self.part, self._address)
        return True

    def disconnected(self) -> bool:
        """Return whether the kernel shows it only its own loopback. False where that cannot be seen."""
        try:
            lines = Path(f"/proc/{self._pid()}/net/dev").read_text(encoding="ascii").splitlines()[2:]
        except (OSError, StackError, psutil.Error):
            return False
        names = [line.partition(":")[0].strip() for line in lines]
        # Some kernels show a sleeping tunnel in every namespace; an engine's own are eth0, eth1, …
        return "lo" in names and not any(name.startswith("eth") for name in names)

    def alive(self) -> bool:
        """Return False once it has ended."""
        return self._status is None

    def stopped(self) -> bool:
        """Return True while it is paused."""
        return self._state() == "paused"

    def family(self) -> list[Container]:
        """Itself: what runs in it ends with it."""
        return [self] if self.alive() else []

    def go_away(self) -> None:
        """SIGKILL to everything in it but the process that keeps it (`Wanted.stays`); returns once its server is gone.
        Raises StackError."""
        self._shell(KILL, "let its server go")

    def come_back(self) -> None:
        """Start its server again, which answers some time later. Raises StackError."""
        self._shell(f"rm -f {AWAY_NOW} {AWAY}", "start its server again")

    def _shell(self, script: str, what: str) -> None:
        request = f"asked {self.name} to {what}"
        with engine_errors(request):
            # As root: the image's user can often not signal a server inside.
            done = self._container.exec_run(["/bin/sh", "-c", script], user="0")
        if done.exit_code != 0:
            words = bytes(done.output or b"").decode(errors="replace").strip()
            raise StackError(f"{request}; it said: {words or f'exit status {done.exit_code}'}")

    def reaches(self, port: int) -> bool:
        """Return whether a process in it has a TCP connection to that port, of whatever machine."""
        return any(process.reaches(port) for process in self.processes())

    def speaks_from(self, address: str, port: int) -> bool:
        """Return whether a process in it holds the TCP socket with that local address and port."""
        return any(process.speaks_from(address, port) for process in self.processes())

    def processes(self) -> list[LocalProcess]:
        """Return what runs in it, as this machine's process table shows it; its first process first; empty once it
        ended. Raises StackError when the engine does not tell: that is not the same as no address."""
        try:
            return LocalProcess(psutil.Process(self._pid())).family() if self.alive() else []
        except psutil.NoSuchProcess:
            return []

    def _pid(self) -> int:
        """Return its first process's number on this machine. Raises psutil.NoSuchProcess if there is none,
        StackError."""
        pid = int(self._container.attrs["State"]["Pid"]) if self._state() else 0
        if pid == 0:
            raise psutil.NoSuchProcess(pid)
        return pid

    def visible(self) -> bool:
        """Return whether this machine's process table shows its first process, and we may signal it."""
        try:
            pid = self._pid()
            psutil.Process(pid).send_signal(0)
            return self._container.id in Path(f"/proc/{pid}/cgroup").read_text()
        except (OSError, psutil.Error, StackError):
            return False

    def run(self, *argv: str) -> str:
        """Return what a command in it prints. Raises StackError."""
        with engine_errors(f"asked {self.name} to run {argv[0]}"):
            return bytes(self._container.exec_run(list(argv)).output or b"").decode(errors="replace")

    def has(self, *modules: str) -> bool:
        """Return whether its Python can import these."""
        with contextlib.suppress(DockerException, requests.RequestException):
            return bool(self._container.exec_run(["python3", "-c", f"import {', '.join(modules)}"]).exit_code == 0)
        return True

    def port(self, inside: int) -> int:
        """Return where one of its ports is published. Raises StackError if it has ended."""
        self._state()
        published = self._container.ports.get(f"{inside}/tcp")
        if not published:
            self._watch.join(PAUSE_S)
            self.check()
            raise StackError(f"{self.name} has no published port {inside}")
        return int(published[0]["HostPort"])

    def log(self, *, lines: int | str = "all") -> str:
        """Return what it has printed."""
        try:
            return bytes(self._container.logs(tail=lines)).decode(errors="replace")
        except APIError:
            return "(no log: it was removed)"
        except (DockerException, requests.RequestException) as error:
            return f"(no log: {error})"

    def ending(self) -> str:
        """Return the end of what it has printed, for an error message."""
        return ending(self.log(lines=ENOUGH))

    def check(self) -> None:
        """Raise StackError with the end of its log if it has ended."""
        status = self.poll()
        if status is not None:
            how = f"signal {-status}" if status < 0 else f"status {status}"
            raise StackError(f"{self.part} ended with {how}; its log ends:\n{self.ending()}")

    def ready(self, probe: Callable[[], Seen], *, within_s: float) -> Seen:
        """Wait until `probe` returns something true. Raises StackError if the container ends, or when the time is
        up."""

        def alive() -> Seen:
            self.check()
            return probe()

        try:
            return wait.until(f"{self.part} to answer", alive, within_s=within_s)
        except WaitError as error:
            raise StackError(f"{error}; its log ends:\n{self.ending()}") from error
