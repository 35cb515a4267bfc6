"""Signals to processes of the run: freeze, kill, stop; and the proof that they died.

What a process is, the stack says: one of this machine's process table, or a whole container.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Sequence

from harness.stack import Process
from harness.wait import Deadline

GONE_WITHIN_S = 10.0
STILL_WITHIN_S = 1.0


def send(processes: Iterable[Process], what: signal.Signals) -> list[Process]:
    """Send a signal to each that still lives; returns those it was sent to."""
    return [process for process in processes if process.send(what)]


def freeze(processes: Iterable[Process]) -> list[Process]:
    """SIGSTOP, in order; returns once none of them moves, so that what is read next stays as it is. A thread that
    is in a system call finishes it first, such as a file's rename: for a second that is waited for."""
    sent = send(processes, signal.SIGSTOP)
    _settle(lambda: any(map(moves, sent)), within_s=STILL_WITHIN_S)
    return sent


def thaw(processes: Iterable[Process]) -> list[Process]:
    """SIGCONT, in order."""
    return send(processes, signal.SIGCONT)


def kill(processes: Sequence[Process]) -> dict[str, bool]:
    """SIGKILL each and wait until it is gone. Returns by name whether it is: one that lives on was not killed."""
    sent = send(processes, signal.SIGKILL)
    # Never waitpid here: the wait status belongs to the process that started it (subprocess keeps it).
    _settle(lambda: any(process.alive() for process in sent), within_s=GONE_WITHIN_S)
    return {process.name: not process.alive() for process in sent}


def _settle(busy: Callable[[], bool], *, within_s: float) -> None:
    deadline, pause = Deadline(within_s), threading.Event()
    while busy() and not deadline.over():
        pause.wait(0.002)


def moves(process: Process) -> bool:
    """Return False once it is stopped (SIGSTOP), or is no more."""
    return process.alive() and not process.stopped()


def family(processes: Iterable[Process]) -> list[Process]:
    """Return the processes and everything under each."""
    return [member for process in processes for member in process.family()]


def owner(processes: Iterable[Process], address: str, port: int) -> Process | None:
    """Return which of the processes, by itself or by one under it, speaks from the TCP address."""
    for process in processes:
        if any(member.speaks_from(address, port) for member in process.family()):
            return process
    return None
