"""A process on this machine, as something that can be struck.

It is named by pid *and* start time (psutil checks both before every signal), so a recycled pid is never struck.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import NamedTuple

import psutil

from harness.errors import HarnessError
from harness.scenario import Victim
from harness.session import reaper

ESTABLISHED = "01"
"""As the kernel's tables say it."""
SHELL_SIGNAL = 128
"""A shell gives a signal as this and its number."""
SIGNALS = {number.value for number in signal.Signals}


@dataclass(frozen=True)
class LocalProcess:
    """One process that this machine's process table shows, in a container or not."""

    process: psutil.Process

    @property
    def pid(self) -> int:
        """Its number here."""
        return self.process.pid

    @property
    def name(self) -> str:
        """How evidence names it: its pid."""
        return str(self.process.pid)

    @property
    def is_jvm(self) -> bool:
        """True for a Java process."""
        words = self.command()
        return bool(words) and Path(words[0]).name == "java"

    @property
    def is_program(self) -> bool:
        """True for the Python program that spark-submit was given: the interpreter, and the program's file."""
        words = self.command()
        return len(words) > 1 and words[1].endswith(".py") and Path(words[0]).name.startswith("python")

    def command(self) -> list[str]:
        """Return its command line; empty once it is gone."""
        try:
            return self.process.cmdline()
        except psutil.Error:
            return []

    @property
    def born(self) -> float:
        """When it began, in seconds since 1970; infinity once it is gone."""
        try:
            return self.process.create_time()
        except psutil.NoSuchProcess:
            return inf

    def send(self, what: signal.Signals) -> bool:
        """Signal it; False if it is gone. Raises HarnessError for init and for ourselves, which are of no run."""
        if self.pid in (0, 1, os.getpid()):
            raise HarnessError(f"asked to signal pid {self.pid}, which is not a process of a run")
        try:
            self.process.send_signal(what)
        except psutil.NoSuchProcess:
            return False
        return True

    def alive(self) -> bool:
        """Return False once it is gone, or a zombie that its parent has not waited for yet, or is asked after right now
        (state X). A thread that is in a system call outlives the first thread of its process. That one is a zombie by
        then and cannot be asked after."""
        try:
            state = self.process.status()
            alone = state == psutil.STATUS_ZOMBIE and len([*Path(f"/proc/{self.pid}/task").iterdir()]) == 1
            return self.process.is_running() and not alone and state != psutil.STATUS_DEAD
        except (OSError, psutil.NoSuchProcess):
            return False

    def stopped(self) -> bool:
        """Return True while it is stopped by SIGSTOP: each of its threads (state T), for one that is in a system call
        finishes that first."""
        try:
            tasks = [(task / "stat").read_bytes() for task in Path(f"/proc/{self.pid}/task").iterdir()]
        except OSError:
            return False
        states = {found.state for found in map(reaper.parse, tasks) if found}
        return "T" in states and states <= {"T", "Z", "X"} and self.process.is_running()

    def threads(self) -> frozenset[str]:
        """Return what its threads are called, the first 15 bytes of each; empty where they cannot be seen."""
        try:
            return frozenset(
                (task / "comm").read_text().rstrip("\n") for task in Path(f"/proc/{self.pid}/task").iterdir()
            )
        except OSError:
            return frozenset()

    def reaches(self, port: int) -> bool:
        """Return whether it has a TCP connection to that port, of whatever machine."""
        return self._holds(lambda socket: socket.to_port == port and socket.state == ESTABLISHED)

    def family(self) -> list[LocalProcess]:
        """Return it and everything under it, since an executor's Python workers are in other groups. Empty if it is
        gone."""
        try:
            return [self, *map(LocalProcess, self.process.children(recursive=True))]
        except psutil.NoSuchProcess:
            return []

    def speaks_from(self, address: str, port: int) -> bool:
        """Return whether it holds the TCP socket with that local address and port."""
        return self._holds(lambda socket: socket.port == port and socket.address == address)

    def _holds(self, which: Callable[[Socket], bool]) -> bool:
        try:
            found = {socket.name for socket in _sockets(self.pid) if which(socket)}
            return bool(found) and any(str(link.readlink()) in found for link in Path(f"/proc/{self.pid}/fd").iterdir())
        except OSError:
            return False


def processes(ids: Iterable[reaper.ProcessId]) -> list[LocalProcess]:
    """Return those that are still there."""
    found = []
    for each in ids:
        try:
            process = psutil.Process(each.pid)
        except psutil.NoSuchProcess:
            continue
        # The pid may have been given out again before psutil read it.
        if reaper.identify(each.pid) == each:
            found.append(LocalProcess(process))
    return found


def carrying(*marks: str) -> list[LocalProcess]:
    """Return every living process whose environment began with each of the marks (`NAME=value`)."""
    return processes(row.id for row in reaper.table().values() if reaper.carries(row.id.pid, *marks))


def chosen(tree: list[LocalProcess], victim: Victim) -> list[LocalProcess]:
    """Return which of a driver's processes die: the JVMs before the others, since only a JVM commits batches."""
    if victim is Victim.PYTHON:
        return [process for process in tree if process.is_program][:1]
    jvms = [process for process in tree if process.is_jvm]
    return jvms if victim is Victim.JVM else [*jvms, *(process for process in tree if process not in jvms)]


def exit_status(status: int) -> int:
    """Return a shell's exit status, or that of a JVM that ends as its program did: negative for a signal, as a
    process's."""
    return SHELL_SIGNAL - status if status - SHELL_SIGNAL in SIGNALS else status


class Socket(NamedTuple):
    """One of TCP; `name` is what `/proc/PID/fd` calls it."""

    name: str
    address: str
    port: int
    to_port: int
    state: str


def _sockets(pid: int) -> Iterator[Socket]:
    """Yield those of the network that the process itself is in, which psutil does not read. Raises OSError."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, here, there, state, *rest = line.split()
            address, _, port = here.partition(":")
            to_port = int(there.partition(":")[2], 16)
            yield Socket(f"socket:[{rest[5]}]", _plain(address), int(port, 16), to_port, state)


def _plain(text: str) -> str:
    """Return the kernel's hexadecimal address (words of four bytes, each in this machine's order) in IPv4's usual form;
    an IPv6 address comes out as its last four bytes, which is where one of IPv4 is in it."""
    word = bytes.fromhex(text[-8:])
    return ".".join(map(str, reversed(word)))
