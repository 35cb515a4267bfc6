"""One running container, as something that can be hurt, watched and asked for its log."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil
import requests
from docker.errors import APIError, DockerException, NotFound

from harness import wait
from harness.errors import StackError, WaitError
from harness.stack.containers.engine import Engine, Wanted
from harness.stack.local import LocalProcess

Seen = TypeVar("Seen")
LINES = 8
SIGNALLED = 128
"""An exit status above this one names a signal."""


class Box:
    """A container of ours. Its end is waited for in a thread, so that asking whether it lives costs nothing."""

    def __init__(self, engine: Engine, wanted: Wanted) -> None:
        self.part = wanted.name
        self._container: Any = engine.start(wanted)
        self._status: int | None = None
        self._watch = threading.Thread(target=self._wait, name=f"wait-{wanted.name}", daemon=True)
        self._watch.start()

    def _wait(self) -> None:
        status = 0
        with contextlib.suppress(DockerException, requests.RequestException):
            status = int(self._container.wait()["StatusCode"])
        self._status = status

    @property
    def name(self) -> str:
        """How evidence names it."""
        return f"container {self._container.name}"

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        if self._status is None:
            return None
        return self._status if self._status <= SIGNALLED else SIGNALLED - self._status

    def send(self, what: signal.Signals) -> bool:
        """Signal its first process; to stop and to go on, the whole of it. False if it is gone."""
        try:
            if what is signal.SIGSTOP:
                self._container.pause()
            elif what is signal.SIGCONT:
                self._container.unpause()
            else:
                self._container.kill(signal=what.name)
        except NotFound:
            return False
        except APIError as error:
            # It is gone, or stands still or moves already.
            if error.status_code not in (409, 500):
                raise
            return self.lives()
        return True

    def lives(self) -> bool:
        """False once it has ended."""
        return self._status is None

    def stands(self) -> bool:
        """True while it is paused."""
        with contextlib.suppress(NotFound):
            self._container.reload()
            return bool(self._container.status == "paused")
        return False

    def family(self) -> list[Box]:
        """Itself: what runs in it ends with it."""
        return [self] if self.lives() else []

    def speaks_from(self, address: str, port: int) -> bool:
        """Does a process in it hold the TCP socket with that local address and port?"""
        return any(process.speaks_from(address, port) for process in self.processes())

    def processes(self) -> list[LocalProcess]:
        """What runs in it, as this machine's process table shows it; its first process first."""
        try:
            self._container.reload()
            top = LocalProcess(psutil.Process(int(self._container.attrs["State"]["Pid"])))
        except (NotFound, psutil.NoSuchProcess, ValueError):
            return []
        return top.family() if self.lives() else []

    def visible(self) -> bool:
        """Does this machine's process table show its first process, and may we signal it?"""
        self._container.reload()
        pid = int(self._container.attrs["State"]["Pid"])
        try:
            groups = Path(f"/proc/{pid}/cgroup").read_text()
            psutil.Process(pid).send_signal(0)
        except (OSError, psutil.Error):
            return False
        return self._container.id in groups

    def port(self, inside: int) -> int:
        """Where one of its ports is published."""
        self._container.reload()
        return int(self._container.ports[f"{inside}/tcp"][0]["HostPort"])

    def log(self, *, lines: int | str = "all") -> str:
        """What it has printed."""
        try:
            return bytes(self._container.logs(tail=lines)).decode(errors="replace")
        except (DockerException, requests.RequestException) as error:
            return f"(no log: {error})"

    def check(self) -> None:
        """Raise StackError with the end of its log if it has ended."""
        if self._status is not None:
            raise StackError(f"{self.name} ended with status {self._status}; its log ends:\n{self.log(lines=LINES)}")

    def ready(self, look: Callable[[], Seen], *, within_s: float) -> Seen:
        """Wait until `look` is content. Raises StackError at once if it ends, or when the time is up."""

        def alive() -> Seen:
            self.check()
            return look()

        try:
            return wait.until(f"{self.part} to answer", alive, within_s=within_s)
        except WaitError as error:
            raise StackError(f"{error}; its log ends:\n{self.log(lines=LINES)}") from error
