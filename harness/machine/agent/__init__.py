"""The agent: a jar on the class path of driver and executors that reports what Spark does, and can hold it there.

`Agent.java` beside this file is compiled by the Janino that Spark ships, once for each version: a JRE suffices.
`org.onceproof.Agent` is the checkpoint file manager, `org.onceproof.Listener` the listener.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from harness.errors import StackError
from harness.machine import cache, jars, java
from harness.machine.janino import COMPILES, compiler
from harness.machine.jars import Jars, spark_home
from harness.machine.java import Java
from harness.machine.spark_versions import SparkVersion
from harness.wait import locked

SOURCE, BUILD = (Path(__file__).with_name(f"{name}.java") for name in ("Agent", "Build"))
NAME = "onceproof-agent.jar"
MANAGER, LISTENER = "org.onceproof.Agent", "org.onceproof.Listener"
PACKAGES = (
    "org.apache.spark.sql.execution.streaming.checkpointing",
    "org.apache.spark.sql.execution.streaming",
)
"""Of `CheckpointFileManager`: from Spark 4.1 on, and before."""
BUILD_S, LOCK_S = 120.0, 300.0
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of each class in the jar: the same classes are the same jar."""


def resolve(found: Java | None = None, version: SparkVersion | None = None) -> Jars:
    """Return what `jars.resolve` does, with the agent among the jars for Spark. Raises StackError as that does."""
    return added(jars.resolve(found, version), found or java.find(), version.wheel if version else spark_home())


def added(there: Jars, found: Java, home: Path) -> Jars:
    """Return the same jars and the agent's for the Spark at `home`. Raises StackError."""
    made = jar(found, home)
    digest = hashlib.sha256(there.digest.encode() + made.read_bytes()).hexdigest()
    return replace(there, spark=(*there.spark, made), digest=digest)


def among(there: Jars) -> bool:
    """Return whether the agent's jar is among the jars for Spark."""
    return any(path.name == NAME for path in there.spark)


def jar(found: Java, home: Path) -> Path:
    """Return the agent's jar for the Spark at `home` (the package pyspark); it is compiled when missing. Raises
    StackError."""
    made = place(home)
    if not made.is_file():
        with locked(cache.folder("agent") / ".lock", within_s=LOCK_S):
            if not made.is_file():
                with cache.filling(made.parent) as folder:
                    _compile(_source(home), folder / NAME, found, home)
    return made


def place(home: Path) -> Path:
    """Return where the agent's jar for that Spark lies, or will. Raises StackError."""
    names = sorted(path.name for path in (home / "jars").glob("spark-*.jar"))
    key = hashlib.sha256("\n".join([_source(home), *names]).encode()).hexdigest()[:16]
    return cache.root() / "agent" / key / NAME


def _source(home: Path) -> str:
    return SOURCE.read_text(encoding="utf-8").replace("PACKAGE", _package(home))


def _package(home: Path) -> str:
    for path in (home / "jars").glob("spark-sql_*.jar"):
        with ZipFile(path) as classes:
            names = {*classes.namelist()}
        for package in PACKAGES:
            if f"{package.replace('.', '/')}/CheckpointFileManager.class" in names:
                return package
    raise StackError(f"asked for Spark's CheckpointFileManager; not in {home / 'jars'}; reinstall pyspark")


def _compile(source: str, target: Path, found: Java, home: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        file, classes = Path(temporary) / SOURCE.name, Path(temporary) / "classes"
        file.write_text(source, encoding="utf-8")
        classes.mkdir()
        class_path = os.pathsep.join(map(str, sorted((home / "jars").glob("*.jar"))))
        command = [str(found.executable), "-cp", os.pathsep.join(map(str, compiler())), COMPILES]
        command += [str(BUILD), BUILD.stem, str(file), str(classes), class_path]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as failure:
            raise StackError(f"cannot compile {SOURCE.name}: {failure}") from failure
        paths = sorted(classes.rglob("*.class"))
        if done.returncode != 0 or not paths:
            raise StackError(f"cannot compile {SOURCE.name} for {home}: {done.stderr.strip()[-500:]}")
        with ZipFile(target, "w") as out:
            for path in paths:
                entry = ZipInfo(path.relative_to(classes).as_posix(), EPOCH)
                out.writestr(entry, path.read_bytes(), compress_type=ZIP_DEFLATED)
