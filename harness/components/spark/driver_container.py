"""Starts one attempt of the driver in a container of its own, so that its end is a container's end."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import failpoint
from harness.components.spark import driver_process, standalone_containers
from harness.components.spark import worker_daemon as workers
from harness.hosts import container
from harness.hosts.container import Container
from harness.hosts.engine import Engine
from harness.hosts.local import chosen
from harness.machine.class_data import Kind, fitted
from harness.machine.jars import Jars
from harness.machine.spark_home import SPARKS_OWN
from harness.resources import RunResources
from harness.scenario import Pipeline, Victim
from harness.stack import Process

# An archive whose name holds its version. `exec` so that the program is what the init looks after.
COMMAND = 'PYTHONPATH="$PYTHONPATH:$(echo "$SPARK_HOME"/python/lib/py4j-*.zip)" exec python3 -u "$@" >> "$0" 2>&1'
SPARK_PYTHON = standalone_containers.SPARK_HOME / "python"
# What a program gives to spark-submit shows nowhere else: the launcher puts it in an order of its own.
TELLS = """#!/bin/sh
printf '%s\\0' "$@" > {told}
exec {spark} "$@"
"""


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
        """The container; or what in it is meant. Where the Python program dies, its container ends with it."""
        if not self.container.alive():
            return []
        # The first process of the container is the init, the program the next.
        return [self.container] if victim is Victim.TREE else [*chosen(self.container.processes()[1:], victim)]


def launch(
    engine: Engine,
    defaults: standalone_containers.ContainerDefaults,
    jars: Jars,
    own: RunResources,
    pipeline: Pipeline,
    *,
    number: int,
    log: Path,
    standby: Sequence[str] = (),
) -> ContainerDriver:
    """Start the program, or what `standby` gives in its place; returns once its container runs. Raises StackError."""
    # A standby that is dropped leaves its name to nobody.
    name = f"driver-{own.run_id}-{number}{'-standby' if standby else ''}"
    log.touch()
    wanted = defaults.wanted(
        name,
        ["/bin/sh", "-c", COMMAND, str(log), *(standby or (pipeline.entry, *pipeline.args))],
        entrypoint=[""],  # none, not even the image's own
        environment=environment(own, pipeline, defaults, jars, number=number, host=name),
        folder=own.folder,
        files=_telling(defaults, own, number),
        run=own.run_id,
        folders={log.parent: True, own.root or Path(pipeline.entry).parent: False},
    )
    return ContainerDriver(number, log, Container(engine, wanted))


def _telling(defaults: standalone_containers.ContainerDefaults, own: RunResources, number: int) -> dict[Path, str]:
    """What is put in the place of the image's spark-submit: it and its own name for ours to call."""
    if defaults.submit is None:
        return {}
    home = standalone_containers.SPARK_HOME
    spark = str(home / SPARKS_OWN)
    script, told = own.folder / f"spark-submit-{number}", _told(own, number)
    script.write_text(TELLS.format(told=shlex.quote(str(told)), spark=spark), encoding="utf-8")
    script.chmod(0o755)
    # Settings of the program may hold a password.
    told.touch(mode=0o600)
    return {script: str(home / standalone_containers.SUBMIT), defaults.submit: spark}


def _told(own: RunResources, number: int) -> Path:
    return own.folder / f"submitted-{number}"


def submitted(own: RunResources, number: int) -> list[str]:
    """The arguments of spark-submit that attempt `number` called last; empty if it called none."""
    try:
        return _told(own, number).read_text(encoding="utf-8").split("\0")[:-1]
    except (OSError, UnicodeError):
        return []


def environment(
    own: RunResources,
    pipeline: Pipeline,
    defaults: standalone_containers.ContainerDefaults,
    jars: Jars,
    *,
    number: int,
    host: str,
) -> Mapping[str, str]:
    """The environment of attempt `number` besides its image's own; the pipeline's own words win."""
    temporary = own.folder / "tmp"
    temporary.mkdir(exist_ok=True)
    conf = {**settings(own, pipeline, defaults, jars, number=number, host=host), **pipeline.conf}
    flags = fitted(defaults.class_archives / f"{Kind.DRIVER}.jsa")
    return {
        "SPARK_HOME": str(own.spark_home),
        "PYTHONPATH": f"{package()}:{SPARK_PYTHON}",
        "PYSPARK_PYTHON": "python3",
        "PYSPARK_DRIVER_PYTHON": "python3",
        "PYSPARK_SUBMIT_ARGS": driver_process.submit_arguments(own, conf),
        "SPARK_SUBMIT_OPTS": driver_process.jvm_flags(flags, temporary),
        "SPARK_LAUNCHER_OPTS": container.JVM,
        "TMPDIR": str(temporary),
        **driver_process.markers(own, number),
        **own.environment,
        **pipeline.env,
    }


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
    return {
        **driver_process.common(own, pipeline, jars, number),
        "spark.executor.extraClassPath": driver_process.class_path(jars),
        "spark.driver.host": host,
        "spark.driver.bindAddress": "0.0.0.0",  # its own network: nobody else is there
        "spark.executor.extraJavaOptions": " ".join(fitted(defaults.class_archives / f"{Kind.EXECUTOR}.jsa")),
        "spark.executorEnv.PYTHONPATH": f"{package()}:{defaults.modules}:{SPARK_PYTHON}",
        **workers.SETTINGS,
        "spark.local.dir": "/tmp",
    }


def package() -> Path:
    """The folder that holds the package `harness`, of which a pipeline may import `failpoint`."""
    return Path(failpoint.__file__).parent.parent
