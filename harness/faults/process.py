"""Signals to processes of the run: freeze, kill, stop; and the proof that they died.

A process is named by pid *and* start time (psutil checks both before every signal), so a recycled pid is never hit.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

from harness.errors import HarnessError
from harness.scenario import Victim
from harness.wait import Deadline

GONE_WITHIN_S = 10.0


def is_jvm(process: psutil.Process) -> bool:
    """True for a Java process."""
    words = command(process)
    return bool(words) and Path(words[0]).name == "java"


def command(process: psutil.Process) -> list[str]:
    """Its command line; empty once it is gone."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def victims(tree: Sequence[psutil.Process], victim: Victim) -> list[psutil.Process]:
    """Which of a driver's processes die: the JVMs before the Python program, since only a JVM commits batches."""
    jvms = [process for process in tree if is_jvm(process)]
    if victim is Victim.JVM:
        return jvms
    if victim is Victim.PYTHON:
        return list(tree[:1])
    return [*jvms, *(process for process in tree if process not in jvms)]


def send(processes: Iterable[psutil.Process], what: signal.Signals) -> list[psutil.Process]:
    """Send a signal to each that still lives; returns those it was sent to."""
    sent = []
    for process in processes:
        try:
            process.send_signal(what)
            sent.append(process)
        except psutil.NoSuchProcess:
            continue
    return sent


def freeze(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """SIGSTOP, in order."""
    return send(processes, signal.SIGSTOP)


def thaw(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """SIGCONT, in order."""
    return send(processes, signal.SIGCONT)


def kill(processes: Sequence[psutil.Process]) -> dict[str, str]:
    """SIGKILL each and wait until it is gone. Returns what became of each, `{pid: words}`.

    A pid that is still there after the signal is named as `alive`: whoever judges must not call that a hit."""
    refuse_own(processes)
    sent = send(processes, signal.SIGKILL)
    deadline = Deadline(GONE_WITHIN_S)
    # Never waitpid here: the wait status belongs to whoever started the process (subprocess keeps it).
    pause = threading.Event()
    while any(lives(process) for process in sent) and not deadline.over():
        pause.wait(0.002)
    return {str(p.pid): "alive" if lives(p) else "gone after SIGKILL" for p in sent}


def lives(process: psutil.Process) -> bool:
    """False once it is gone, or a zombie that nobody has asked after yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_stopped(process: psutil.Process) -> bool:
    """True while it stands still (state T)."""
    try:
        return bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False


def moves(process: psutil.Process) -> bool:
    """False once it stands still, or is no more."""
    return lives(process) and not is_stopped(process)


def all_died(signalled: dict[str, str]) -> bool:
    """True if at least one process was signalled and none of them lives."""
    return bool(signalled) and "alive" not in signalled.values()


def owner_of_port(processes: Iterable[psutil.Process], port: int) -> psutil.Process | None:
    """Which of the processes (or of their children) speaks from the local TCP port."""
    for process in processes:
        try:
            family = [process, *process.children(recursive=True)]
            for member in family:
                if any(c.laddr and c.laddr.port == port for c in member.net_connections(kind="tcp")):
                    return process
        except psutil.Error:
            continue
    return None


def refuse_own(processes: Iterable[psutil.Process]) -> None:
    """Raise HarnessError rather than signal pid 0, 1 or ourselves."""
    for process in processes:
        if process.pid in (0, 1, os.getpid()):
            raise HarnessError(f"asked to signal pid {process.pid}, which is not a process of a run")
