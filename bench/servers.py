"""How long each server that the harness starts takes until it is ready, and how much memory it has once it is idle: one
after another, each in a session that has nothing else.

    PYTHONPATH=. .venv/bin/python bench/servers.py [NAME...] [--rounds N]

Ready is what the server's own component takes for it, such as a file that HDFS takes and gives back; what is fetched is
there before. CPU-seconds are those of all its processes until then, tools that have ended included: they depend less on
what else runs. Memory is that of all processes of the session but the reaper: RSS counts a page that two of them share
twice, PSS by halves.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic
from typing import Protocol

import psutil

from harness.component import COMPONENTS, AsProcesses
from harness.components.yarn.cluster import Yarn
from harness.errors import StackError, WaitError
from harness.hosts.local import carrying
from harness.hosts.processes import ProcessHost
from harness.machine import class_data, jars, java
from harness.session.reaper import MARKER
from harness.session.session import Session
from harness.spark.standalone_processes import Spark
from harness.wait import Waiting, until

POLL_S, IDLE_S = 2.0, 120.0
IDLE_SHARE = 0.05
"""Of a core. Daemons of YARN tell each other five times a second that they are there."""
MIB = 2**20


class Server(Protocol):
    """What is measured."""

    def start(self) -> None:
        """Return when it is ready."""

    def close(self) -> None:
        """Give back its ports."""


def servers() -> Mapping[str, Callable[[ProcessHost], Server]]:
    """How each is made, by name."""
    out: dict[str, Callable[[ProcessHost], Server]] = {
        "spark": lambda host: Spark(host.session, host.java, logs=host.logs, flags=host.flags[class_data.Kind.DAEMON]),
        "yarn": lambda host: Yarn(host.session, host.java, logs=host.logs),
    }
    return out | {name: kind.as_processes for name, kind in COMPONENTS.all().items() if isinstance(kind, AsProcesses)}


def measure(name: str, make: Callable[[ProcessHost], Server]) -> str:
    """Start it, wait until it is idle, end it; the line that says what was seen, none of one that is no process.
    Raises StackError."""
    found = java.find()
    resolved = jars.resolve(found)
    flags = {kind: class_data.flags(kind, found, resolved) for kind in class_data.Kind}
    with ExitStack() as steps:
        logs = Path(steps.enter_context(tempfile.TemporaryDirectory(prefix="onceproof-bench-")))
        session = steps.enter_context(Session())
        before, ended_s = monotonic(), children_s()
        server = make(ProcessHost(session=session, logs=logs, java=found, jars=resolved, flags=flags))
        steps.callback(server.close)
        server.start()
        took_s, busy_s = monotonic() - before, children_s() - ended_s + cpu_s(session)
        if not of(session):
            return ""
        idle = settled(session)
        each = [process.memory_full_info() for process in of(session)]
        rss, pss = (sum(getattr(one, what) for one in each) / MIB for what in ("rss", "pss"))
        memory = f"{len(each)} processes, RSS {rss:.0f} MiB, PSS {pss:.0f} MiB{'' if idle else ', not idle'}"
        return f"{name}: ready after {took_s:.1f} s, {busy_s:.1f} CPU-s; {memory}"


def of(session: Session) -> list[psutil.Process]:
    """Return its processes but the reaper. Postgres overwrites the environment of its processes."""
    marked = [each for each in carrying(f"{MARKER}={session.id}") if each.pid != session.reaper_pid]
    return list({each.pid: each.process for one in marked for each in one.family()}.values())


def settled(session: Session) -> bool:
    """Return whether it is idle, before its time is up."""
    last = monotonic(), cpu_s(session)

    def idle() -> bool | Waiting:
        nonlocal last
        before, last = last, (monotonic(), cpu_s(session))
        share = (last[1] - before[1]) / (last[0] - before[0])
        return share < IDLE_SHARE or Waiting(f"{share:.2f} of a core")

    try:
        return bool(until("the server to be idle", idle, within_s=IDLE_S, every_s=POLL_S))
    except WaitError:
        return False


def children_s() -> float:
    """What children of ours have taken that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def cpu_s(session: Session) -> float:
    """What its processes have taken so far."""
    taken = 0.0
    for process in of(session):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            taken += times.user + times.system
    return taken


def main() -> int:
    known = servers()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(sorted(known))}; all without one")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    failed = 0
    for _ in range(options.rounds):
        for name in options.names or sorted(known):
            try:
                measured = measure(name, known[name])
            except StackError as error:
                measured, failed = f"{name}: {' '.join(str(error).split())}", 1
            if measured:
                print(f"{measured} (load {os.getloadavg()[0]:.0f})", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
