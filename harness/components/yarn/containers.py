"""The processes of YARN's containers, as this machine's process table shows them.

Each carries the run's mark, and `CONTAINER_ID`, which NodeManager gives it: by that it belongs to an attempt. They are
in separate sessions, and outlive NodeManager. The shells that YARN wraps around a container's program are left
out: they touch nothing of a run, and write down how the program ended once it is dead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from harness.hosts.local import LocalProcess, carrying

VARIABLE = "CONTAINER_ID"
ID = re.compile(r"container_(?:e\d+_)?(\d+_\d+)_(\d+)_\d+")
MASTER = "org.apache.spark.deploy.yarn.ApplicationMaster"
EXECUTOR = "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend"
SHELLS = ("bash", "sh", "setsid")


@dataclass(frozen=True)
class Contained:
    """A process, the id of its container, and which attempt of which application that is."""

    process: LocalProcess
    container: str
    application: str
    attempt: int


def contained(mark: str, *, attempt: int | None = None) -> list[Contained]:
    """Return those of a run (`NAME=value` in their environment), or of one attempt, oldest first."""
    found = [each for each in _contained(mark) if attempt is None or each.attempt == attempt]
    return sorted(found, key=lambda each: each.process.born)


def _contained(mark: str) -> Iterator[Contained]:
    for process in carrying(mark):
        try:
            container = process.process.environ().get(VARIABLE, "")
        except psutil.Error:
            continue  # gone since
        parts = ID.fullmatch(container)
        if parts is not None and not _wraps(process, container):
            yield Contained(process, container, f"application_{parts[1]}", int(parts[2]))


def _wraps(process: LocalProcess, container: str) -> bool:
    """Return whether it is one of YARN's shells. Their command names the container's folder."""
    words = process.command()
    return bool(words) and words[0].rpartition("/")[2] in SHELLS and any(container in word for word in words)


def master(found: list[Contained]) -> Contained | None:
    """Return the ApplicationMaster's JVM: in cluster mode the driver's."""
    return next((each for each in found if runs(each.process, MASTER)), None)


def runs(process: LocalProcess, main: str) -> bool:
    """Return whether it is a JVM with that main class."""
    return process.is_jvm and main in process.command()
