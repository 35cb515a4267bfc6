"""Another Spark version than the installed one: its own standalone cluster, with its Python and its jars.

Drivers and executors of one version speak only to a master and a worker of the same version. No jar of the installed
Spark is used. The class data archives are those of the version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import failpoint
from harness.machine import agent, class_data, jars, spark_versions
from harness.machine.class_data import Kind
from harness.machine.java import Java
from harness.machine.spark_versions import SparkVersion
from harness.resources import RunResources, component_of
from harness.scenario import Pipeline
from harness.session.session import Session
from harness.spark.driver_process import Machine
from harness.spark.standalone_processes import SETTINGS, Spark
from harness.stack import PROMISED_CORES

JARS = "jars"
"""The name of the placeholder in which a component gives the jars that Spark reaches it by (`{delta.jars}`)."""


@dataclass(frozen=True)
class OtherVersion:
    """The cluster of another Spark version, and what a driver on it runs on."""

    version: SparkVersion
    cluster: Spark
    machine: Machine

    def start(self) -> None:
        """Return when the worker is registered. Raises StackError."""
        install(self.cluster.modules)
        self.cluster.start()

    def given(self, own: RunResources) -> RunResources:
        """Return the resources of a run, with this Spark."""
        return replace(own, spark_master=self.cluster.master, spark_home=self.cluster.home)

    def with_own_jars(self, own: RunResources, pipeline: Pipeline) -> Pipeline:
        """Return the program with this version's jars in place of those for the installed Spark, in its arguments,
        environment and configuration. Raises StackError."""
        theirs: dict[str, str] = {}
        for label, part in own.parts.items():
            names = jars.for_spark(component_of(label), self.version.name) if part.placeholders.get(JARS) else ()
            found = [str(path) for name in names for path in jars.fetched(name, self.machine.java, self.version)]
            theirs |= {part.placeholders[JARS]: ",".join(found)} if found else {}

        def swapped(text: str) -> str:
            for installed, own_jars in theirs.items():
                text = text.replace(installed, own_jars)
            return text

        return replace(
            pipeline,
            args=tuple(map(swapped, pipeline.args)),
            env={name: swapped(text) for name, text in pipeline.env.items()},
            conf={name: swapped(text) for name, text in pipeline.conf.items()},
        )

    def describe(self) -> dict[str, Any]:
        """Return versions and settings, for run.json. They hold no secret."""
        return {
            "version": self.version.release,
            "neighbours": jars.neighbours("spark", self.version),
            "cores": PROMISED_CORES,
            "jars": self.machine.jars.digest,
            "flags": {"driver": list(self.machine.flags), "executor": list(self.machine.executor_flags)},
            "settings": dict(SETTINGS),
        }


def other_version(name: str, session: Session, java: Java, *, logs: Path, tuned: bool) -> OtherVersion:
    """Return the cluster of that Spark version, not started; what it needs is made and fetched. Raises StackError."""
    spark_versions.fits(name, java)
    version = spark_versions.made(name)
    found = agent.resolve(java, version)
    flags = {kind: class_data.flags(kind, java, found, version) if tuned else () for kind in class_data.OF_SPARK}
    cluster = Spark(session, java, logs=logs, flags=flags[Kind.DAEMON], version=version)
    return OtherVersion(version, cluster, machine(cluster, version, java, found, flags))


def machine(
    cluster: Spark, version: SparkVersion, java: Java, found: jars.Jars, flags: Mapping[Kind, tuple[str, ...]]
) -> Machine:
    """Return what a driver of that Spark version runs on: jars, Python, and JVM flags for driver and executors."""
    return Machine(
        java=java,
        jars=found,
        flags=flags[Kind.DRIVER],
        executor_flags=flags[Kind.EXECUTOR],
        python=str(version.python),
        program=str(version.python),
        modules=cluster.modules,
    )


def install(folder: Path) -> None:
    """Put there the harness module that a program may import; the environment of another version does not have it."""
    package = folder / "harness"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    (package / "failpoint.py").write_bytes(Path(failpoint.__file__).read_bytes())
