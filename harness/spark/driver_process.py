"""Starts one attempt of the driver: its own process tree, in client mode against the standalone master.

The program is started by the `spark-submit` of the Spark that it runs on, unedited. `settings.py` has all that the
harness gives to it besides; a program that builds its own session keeps the last word.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness import failpoint
from harness.hosts.local import LocalProcess, chosen, exit_status
from harness.machine import agent, class_data
from harness.machine.jars import Jars
from harness.machine.java import Java
from harness.resources import RunResources
from harness.scenario import Pipeline, Victim
from harness.session import reaper
from harness.session.session import Session
from harness.spark import beside
from harness.spark.beside import Users
from harness.spark.settings import (
    AGENT,
    ATTEMPT,
    DELEGATE,
    EXECUTOR_OPTIONS,
    JARS,
    LISTENERS,
    MANAGER,
    OF_SESSION,
    RUN,
    changes,
)
from harness.stack import Change

MEMORY = "512m"
SUBMIT = "bin/spark-submit"
"""In a Spark home."""
SECRETS = "secrets.conf"
"""The file of a run's folder that has the settings which no command line may show."""


@dataclass(frozen=True)
class ProcessDriver:
    """A driver that is a child process of ours."""

    number: int
    log: Path
    process: subprocess.Popen[bytes]

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it lives."""
        status = self.process.poll()
        return None if status is None else exit_status(status)

    def processes(self, victim: Victim = Victim.TREE) -> list[LocalProcess]:
        """Return those of its tree that die when `victim` does, JVMs first; empty once it is gone."""
        # Once its exit status was read, the pid may be another process's.
        if self.process.poll() is not None:
            return []
        try:
            tree = LocalProcess(psutil.Process(self.process.pid)).family()
        except psutil.NoSuchProcess:
            return []
        return chosen(tree, victim)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a driver runs on: the Java, the jars and the JVM flags (class data archives) found at set-up.

    `host` is how executors reach it, `python` what they run, `program` what runs the program. Where they have none of
    our paths, they get the jars from the driver, and with them `shipped`, an archive of Python modules. `scratch` is
    where Spark puts what it spills, `bind` the address that the driver listens on. `modules` is a folder of Python
    modules for a program whose Python has no package `harness`."""

    java: Java
    jars: Jars
    flags: tuple[str, ...] = class_data.JIT
    executor_flags: tuple[str, ...] = class_data.JIT
    host: str = "127.0.0.1"
    python: str = sys.executable
    shipped: Path | None = None
    scratch: Path | None = None
    bind: str = "127.0.0.1"
    program: str = sys.executable
    modules: Path | None = None


def launch(
    session: Session, own: RunResources, pipeline: Pipeline, machine: Machine, *, number: int, log: Path
) -> ProcessDriver:
    """Start the program; returns at once. Raises OSError if spark-submit cannot be started."""
    users = beside.read(own, pipeline)
    conf = users.merged(settings(own, pipeline, machine, number, users))
    command = submit(own, conf, pipeline, users.defaults)
    env, name = environment(own, pipeline, machine, number), f"driver-{own.run_id}-{number}"
    return ProcessDriver(number, log, session.spawn(command, name=name, log=log, env=env, cwd=own.folder))


def submit(own: RunResources, conf: Mapping[str, str], pipeline: Pipeline, defaults: str = "") -> list[str]:
    """Return the command that starts the program with these settings. `defaults`: those of the user, which Spark passes
    over where it is given another file."""
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    secrets = _secrets(own, defaults)
    file = ["--properties-file", str(secrets)] if secrets else []
    command = [str(own.spark_home / SUBMIT), "--master", own.spark_master]
    return [*command, *file, *settings, pipeline.entry, *pipeline.args]


def environment(own: RunResources, pipeline: Pipeline, machine: Machine, number: int) -> dict[str, str]:
    """Return the whole environment of attempt `number`; the pipeline's own words win. JVM flags of the shell come after
    ours."""
    (own.folder / "tmp").mkdir(exist_ok=True)
    ours = variables(own, machine, number, beside.read(own, pipeline))
    both = {name: f"{ours[name]} {os.environ[name]}" for name in beside.OF_SPARK if name in os.environ}
    return {**os.environ, **ours, **both, **own.environment, **pipeline.env}


def variables(own: RunResources, machine: Machine, number: int, users: Users) -> dict[str, str]:
    """Return what the harness adds to the environment of attempt `number`."""
    temporary = own.folder / "tmp"
    return {
        "JAVA_HOME": str(machine.java.home),
        "SPARK_HOME": str(own.spark_home),
        "SPARK_LOCAL_IP": machine.bind,
        "PYSPARK_PYTHON": machine.python,
        "PYSPARK_DRIVER_PYTHON": machine.program,
        **({"PYTHONPATH": _modules(machine.modules)} if machine.modules else {}),
        "SPARK_SUBMIT_OPTS": jvm_flags(users.driver_flags(machine.flags), temporary),
        "SPARK_LAUNCHER_OPTS": " ".join(users.driver_flags(class_data.JIT) if machine.flags else ()),
        "TMPDIR": str(temporary),
        **markers(own, number),
    }


def table(own: RunResources, pipeline: Pipeline, machine: Machine) -> list[Change]:
    """Return what is changed of Spark for the first attempt. It holds no secret: variables of components are named
    alone."""
    users = beside.read(own, pipeline)
    given = {**variables(own, machine, 1, users), reaper.MARKER: OF_SESSION}
    return changes(settings(own, pipeline, machine, 1, users), given, own, pipeline)


def _secrets(own: RunResources, defaults: str) -> Path | None:
    """Return the file of settings that hold secrets, as Spark reads one; None without any."""
    if not own.secret_conf:
        return None
    path = own.folder / SECRETS
    path.touch(mode=0o600)
    path.write_text(f"{defaults}{beside.properties(own.secret_conf)}", encoding="utf-8", errors=beside.ANY)
    return path


def _modules(ours: Path) -> str:
    """Return the import path of a program whose Python is not this one: what the user has put there, but for a
    pyspark."""
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return os.pathsep.join([str(ours), *(each for each in given if not (Path(each) / "pyspark").exists())])


def jvm_flags(archive: Sequence[str], temporary: Path) -> str:
    """Return the flags of every driver's JVM: those with its class data archive, and its temporary folder."""
    return " ".join([*archive, f"-Djava.io.tmpdir={temporary}", "-XX:-UsePerfData"])


def settings(own: RunResources, pipeline: Pipeline, machine: Machine, number: int, users: Users) -> dict[str, str]:
    """Spark's configuration as the harness sets it: addresses, jars, size; nothing that changes what a sink sees."""
    return {
        **common(own, pipeline, machine.jars, number, users),
        "spark.driver.host": machine.host,
        "spark.driver.bindAddress": machine.bind,
        "spark.local.dir": str(machine.scratch or own.folder.parent / "scratch"),
        **(_shipped(machine.jars, machine.shipped) if machine.shipped else _shared(own, machine, users)),
    }


def _shared(own: RunResources, machine: Machine, users: Users) -> dict[str, str]:
    """For executors that see this machine's files."""
    return {
        # Where clients of object stores keep what they are about to send; else a folder in /tmp that stays.
        "spark.hadoop.hadoop.tmp.dir": str(own.folder / "tmp"),
        "spark.executor.extraClassPath": class_path(machine.jars),
        EXECUTOR_OPTIONS: " ".join(users.executor_flags(machine.executor_flags)),
    }


def _shipped(jars: Jars, modules: Path) -> dict[str, str]:
    """For executors elsewhere: they fetch what they need from the driver."""
    return {JARS: ",".join(map(str, jars.spark)), "spark.submit.pyFiles": str(modules)}


def class_path(jars: Jars) -> str:
    """Return the connector's jars."""
    return os.pathsep.join(map(str, jars.spark))


def common(own: RunResources, pipeline: Pipeline, jars: Jars, number: int, users: Users) -> dict[str, str]:
    """Return what of it is the same on every stack of our own."""
    cores = max(2, pipeline.executors)
    return {
        "spark.app.name": own.run_id,
        "spark.driver.extraClassPath": class_path(jars),
        "spark.driver.memory": MEMORY,
        "spark.executor.cores": str(cores // max(1, pipeline.executors)),
        "spark.cores.max": str(cores),
        "spark.executor.memory": MEMORY,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **(_reporting(users) if own.agent and agent.among(jars) else {}),
        **own.conf,
        **{f"spark.executorEnv.{name}": value for name, value in markers(own, number).items()},
    }


def mark(own: RunResources) -> str:
    """Return what is in the environment of each process of a run, `NAME=value`."""
    return f"{RUN}={own.run_id}"


def _reporting(users: Users) -> dict[str, str]:
    """Return the agent, which hands on to the checkpoint file manager that the user asks for."""
    manager = users.conf.get(MANAGER)
    return {MANAGER: agent.MANAGER, LISTENERS: agent.LISTENER, **({DELEGATE: manager} if manager else {})}


def marks(own: RunResources, attempt: int | None) -> tuple[str, ...]:
    """Return what is in the environment of each process of the run, or of one attempt: `NAME=value` each."""
    return (mark(own),) if attempt is None else (mark(own), f"{ATTEMPT}={attempt}")


def markers(own: RunResources, number: int) -> Mapping[str, str]:
    """By what each process of a run and of an attempt is known, where failpoints are armed, and where the agent
    reports."""
    names = {RUN: own.run_id, ATTEMPT: str(number), failpoint.FOLDER: str(own.folder / "failpoints")}
    return {**names, AGENT: own.agent} if own.agent else names


def package() -> Path:
    """Return the folder that holds the package `harness`, of which a pipeline may import `failpoint`."""
    return Path(failpoint.__file__).parent.parent
