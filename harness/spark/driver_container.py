"""Starts one attempt of the driver in a new container, so that its end is the container's end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.hosts import container
from harness.hosts.container import Container
from harness.hosts.engine import Engine
from harness.hosts.local import chosen
from harness.machine.class_data import Kind, fitted
from harness.machine.jars import Jars
from harness.resources import RunResources
from harness.scenario import Pipeline, Victim
from harness.spark import driver_process, standalone_containers
from harness.spark.beside import Users
from harness.spark.settings import EXECUTOR_OPTIONS, changes
from harness.stack import Change, Process

# `exec` so that spark-submit is what the init looks after.
COMMAND = 'exec "$@" >> "$0" 2>&1'


@dataclass(frozen=True)
class ContainerDriver:
    """A driver that is a container."""

    number: int
    log: Path
    container: Container

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it lives."""
        return self.container.poll()

    def processes(self, victim: Victim = Victim.TREE) -> list[Process]:
        """Return the container, or the processes in it that `victim` means."""
        if not self.container.alive():
            return []
        return [self.container] if victim is Victim.TREE else [*chosen(self.container.processes(), victim)]


def launch(
    engine: Engine,
    defaults: standalone_containers.ContainerDefaults,
    jars: Jars,
    own: RunResources,
    pipeline: Pipeline,
    *,
    number: int,
    log: Path,
) -> ContainerDriver:
    """Start the program; returns once its container runs. Raises StackError."""
    name = f"driver-{own.run_id}-{number}"
    conf = Users(pipeline=pipeline.conf).merged(settings(own, pipeline, defaults, jars, number=number, host=name))
    log.touch()
    wanted = defaults.wanted(
        name,
        ["/bin/sh", "-c", COMMAND, str(log), *driver_process.submit(own, conf, pipeline)],
        entrypoint=[""],  # none, not even the image's own
        environment=environment(own, pipeline, defaults, number=number),
        folder=own.folder,
        run=own.run_id,
        folders={log.parent: True, own.root or Path(pipeline.entry).parent: False},
    )
    return ContainerDriver(number, log, Container(engine, wanted))


def environment(
    own: RunResources,
    pipeline: Pipeline,
    defaults: standalone_containers.ContainerDefaults,
    *,
    number: int,
) -> Mapping[str, str]:
    """Return the environment of attempt `number` besides its image's own; the pipeline's own words win."""
    (own.folder / "tmp").mkdir(exist_ok=True)
    return {**variables(own, pipeline, defaults, number), **own.environment, **pipeline.env}


def variables(
    own: RunResources, pipeline: Pipeline, defaults: standalone_containers.ContainerDefaults, number: int
) -> dict[str, str]:
    """Return what the harness adds to the environment of attempt `number`."""
    temporary = own.folder / "tmp"
    flags = Users(pipeline=pipeline.conf).driver_flags(fitted(defaults.class_archives / f"{Kind.DRIVER}.jsa"))
    return {
        "SPARK_HOME": str(own.spark_home),
        "PYTHONPATH": str(driver_process.package()),
        "PYSPARK_PYTHON": "python3",
        "PYSPARK_DRIVER_PYTHON": "python3",
        "SPARK_SUBMIT_OPTS": driver_process.jvm_flags(flags, temporary),
        "SPARK_LAUNCHER_OPTS": container.JVM,
        "TMPDIR": str(temporary),
        **driver_process.markers(own, number),
    }


def table(
    own: RunResources, pipeline: Pipeline, defaults: standalone_containers.ContainerDefaults, jars: Jars
) -> list[Change]:
    """Return what is changed of Spark for the first attempt. It holds no secret: variables of components are named
    alone."""
    conf = settings(own, pipeline, defaults, jars, number=1, host="(its container)")
    return changes(conf, variables(own, pipeline, defaults, 1), own, pipeline)


def settings(
    own: RunResources,
    pipeline: Pipeline,
    defaults: standalone_containers.ContainerDefaults,
    jars: Jars,
    *,
    number: int,
    host: str,
) -> dict[str, str]:
    """Spark's configuration as the harness sets it."""
    users = Users(pipeline=pipeline.conf)
    flags = users.executor_flags(fitted(defaults.class_archives / f"{Kind.EXECUTOR}.jsa"))
    return {
        **driver_process.common(own, pipeline, jars, number, users),
        "spark.executor.extraClassPath": driver_process.class_path(jars),
        "spark.driver.host": host,
        "spark.driver.bindAddress": "0.0.0.0",  # its own network: no other process is there
        EXECUTOR_OPTIONS: " ".join(flags),
        "spark.executorEnv.PYTHONPATH": str(driver_process.package()),
        "spark.local.dir": "/tmp",
    }
