"""Class data archives (AppCDS): classes that the JVM maps ready-made instead of loading and checking each again.

It changes nothing but speed. An archive fits one JDK, one class path in one order and jars with one
size and time; all that is in the name of its folder in our own cache, so one that does not fit is never offered. Made
by `harness.training.processes`. Never by a bare `java -Xshare:dump`: that rewrites the JDK's own archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from harness.machine import cache
from harness.machine.jars import Jars, spark_home
from harness.machine.java import Java
from harness.machine.spark_versions import SparkVersion

# Spark forks a child for each link and permission of its checkpoint; VFORK does it without a helper in between.
JIT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djdk.lang.Process.launchMechanism=VFORK")
FORM = 3
"""Counts up when what is trained changes."""


class Kind(StrEnum):
    """Which JVM: each has its own class path, and starts and ends by itself."""

    BROKER = "broker"
    DAEMON = "daemon"
    DRIVER = "driver"
    EXECUTOR = "executor"


IN_CONTAINERS = (Kind.DRIVER, Kind.EXECUTOR)
"""Which of them a Spark image gets."""
OF_SPARK = (Kind.DAEMON, Kind.DRIVER, Kind.EXECUTOR)
"""Which of them run Spark: those that another version of Spark gets."""


def flags(kind: Kind, java: Java, jars: Jars, version: SparkVersion | None = None) -> tuple[str, ...]:
    """Return the JVM flags for this kind: short-lived JIT and collector, and its archive if there is one that fits.
    `version` is another version of Spark than the installed one."""
    return fitted(cache.used(folder(java, jars, version)) / f"{kind}.jsa")


def fitted(archive: Path) -> tuple[str, ...]:
    """Return the JVM flags with this archive, if it is there."""
    if not archive.is_file():
        return JIT
    # auto: a JVM that cannot map it after all starts without it.
    return (*JIT, f"-XX:SharedArchiveFile={archive}", "-Xshare:auto")


def maps(flag: str) -> bool:
    """Return whether a JVM flag has an archive mapped."""
    return flag.startswith("-XX:SharedArchiveFile=") or flag == "-Xshare:auto"


def of_image(image: str, jars: Jars) -> Path:
    """Return where the archives for the Spark image with this id and these jars lie, or will; made when missing."""
    text = "\n".join([f"form {FORM}", image, jars.digest, *map(state, jars.spark)])
    return cache.used(cache.folder("cds-containers", hashlib.sha256(text.encode()).hexdigest()[:16]))


def training_flags(archive: Path) -> tuple[str, ...]:
    """Return the JVM flags that write `archive` when the program ends well.

    Without a log: hundreds of warnings about classes that cannot be kept would fill a pipe without a reader."""
    return (*JIT, f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable")


def trained(java: Java, jars: Jars, version: SparkVersion | None = None) -> bool:
    """Return whether every kind that this Spark needs has an archive that fits."""
    return complete(folder(java, jars, version), OF_SPARK if version else Kind)


def complete(class_archives: Path, kinds: Iterable[Kind]) -> bool:
    """Return whether the folder holds an archive of each of these kinds."""
    return all((class_archives / f"{kind}.jsa").is_file() for kind in kinds)


def folder(java: Java, jars: Jars, version: SparkVersion | None = None) -> Path:
    """Return the folder of the archives for this JDK, these jars and this Spark. It may not exist yet."""
    home = version.wheel if version else spark_home()
    text = "\n".join([f"form {FORM}", java.text, jars.digest, *_jdk(java), *_class_path(jars, home)])
    return cache.root() / "cds" / hashlib.sha256(text.encode()).hexdigest()[:16]


def conf() -> Path:
    """Return the empty `SPARK_CONF_DIR` of executors. As a part of their class path it must be the same for every
    run."""
    return cache.folder("spark-conf")


def _jdk(java: Java) -> Iterator[str]:
    # Archives stack on the JDK's own one: a JDK that was updated in place has another.
    for name in ("release", "lib/server/classes.jsa", "lib/modules"):
        path = java.home / name
        yield state(path) if path.exists() else f"{path} none"


def _class_path(jars: Jars, home: Path) -> Iterator[str]:
    for path in (*jars.broker, *jars.spark):
        yield state(path)
    # In the order of the folder itself, which is the one that Java's wildcard takes.
    for path in (home / "jars").iterdir():
        yield state(path)


def state(path: Path) -> str:
    """Return a file, and what changes with it: its size and time."""
    seen = path.stat()
    return f"{path} {seen.st_size} {seen.st_mtime_ns}"
