"""Another Spark version than the installed one: a standalone cluster of its own, with its Python and its jars.

Drivers and executors of one line speak only to a master and a worker of the same. No jar of the installed Spark is
used. Class data archives are those of the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import failpoint
from harness.machine import agent, class_data, jars, spark_lines
from harness.machine.class_data import Kind
from harness.machine.java import Java
from harness.machine.spark_lines import Line
from harness.resources import RunResources, component_of
from harness.scenario import Pipeline
from harness.session.session import Session
from harness.spark.driver_process import Machine
from harness.spark.standalone_processes import SETTINGS, Spark

JARS = "jars"
"""What the placeholder is called under which a component gives what Spark reaches it by (`{delta.jars}`)."""


@dataclass(frozen=True)
class OtherLine:
    """The cluster of a line, and what a driver on it runs on."""

    line: Line
    cluster: Spark
    machine: Machine

    def start(self) -> None:
        """Return when the worker is registered. Raises StackError."""
        install(self.cluster.modules)
        self.cluster.start()

    def given(self, own: RunResources) -> RunResources:
        """What a run has, with this Spark."""
        return replace(own, spark_master=self.cluster.master, spark_home=self.cluster.home)

    def told(self, own: RunResources, pipeline: Pipeline) -> Pipeline:
        """The same program, which is told of this line's jars wherever it is told of those for the installed Spark.
        Raises StackError."""
        theirs: dict[str, str] = {}
        for label, part in own.parts.items():
            names = jars.for_spark(component_of(label), self.line.name) if part.placeholders.get(JARS) else ()
            found = [str(path) for name in names for path in jars.fetched(name, self.machine.java, self.line)]
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
        """Versions and settings, for run.json. Holds no secret."""
        return {
            "version": self.line.version,
            "neighbours": jars.neighbours("spark", self.line),
            "cores": self.cluster.cores,
            "jars": self.machine.jars.digest,
            "flags": {"driver": list(self.machine.flags), "executor": list(self.machine.executor_flags)},
            "settings": dict(SETTINGS),
        }


def other_line(name: str, session: Session, java: Java, *, logs: Path, executors: int, tuned: bool) -> OtherLine:
    """The one of that name, not yet started; what it needs is made and fetched. Raises StackError."""
    spark_lines.fits(name, java)
    line = spark_lines.made(name)
    found = agent.resolve(java, line)
    flags = {kind: class_data.flags(kind, java, found, line) if tuned else () for kind in class_data.OF_SPARK}
    cluster = Spark(session, java, logs=logs, executors=executors, flags=flags[Kind.DAEMON], line=line)
    return OtherLine(line, cluster, machine(cluster, line, java, found, flags))


def machine(cluster: Spark, line: Line, java: Java, found: jars.Jars, flags: Mapping[Kind, tuple[str, ...]]) -> Machine:
    """Return what a driver of that line runs on: its jars, its Python, and the JVM flags for driver and executors."""
    return Machine(
        java=java,
        jars=found,
        flags=flags[Kind.DRIVER],
        executor_flags=flags[Kind.EXECUTOR],
        python=str(line.python),
        program=str(line.python),
        modules=cluster.modules,
    )


def install(folder: Path) -> None:
    """Put there what a program may import of ours; it is not in the environment of another line."""
    package = folder / "harness"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    (package / "failpoint.py").write_bytes(Path(failpoint.__file__).read_bytes())
