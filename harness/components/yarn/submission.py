"""Submits a pipeline as it is: `spark-submit --master yarn --deploy-mode cluster`, its settings in a file that only we
may read.

The program's own folder goes on the driver's import path, as if it lay on every node: YARN copies the program alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness import failpoint
from harness.components.yarn.cluster import Yarn
from harness.components.yarn.policy import ATTEMPTS, MOST, attempts
from harness.hosts import service
from harness.hosts.ports import LOOPBACK
from harness.machine import class_data
from harness.machine.class_data import Kind
from harness.machine.jars import Jars
from harness.machine.java import Java
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.session import reaper
from harness.session.session import Session
from harness.spark import beside, driver_process
from harness.spark.settings import AGENT, ATTEMPT, OF_SESSION, RUN, changes, inherited
from harness.stack import Change

NAMED = re.compile(rb"application_\d+_\d+")
SHELL_READS = re.compile(r'([\\"$`])')
"""What the shell that starts a container would not take as it stands: YARN puts values between double quotes."""
IPC_DEFAULTS: Mapping[str, str] = {
    "ipc.client.connect.max.retries": "10",
    "ipc.client.connect.retry.interval": "1000",
}
"""Hadoop's own, in milliseconds; our daemons knock again sooner."""


@dataclass
class Submission:
    """One `spark-submit`; what it says begins the log of the first attempt. `tag` is what its application alone has."""

    process: subprocess.Popen[bytes]
    log: Path
    tag: str
    _application: str = field(default="", init=False)

    @property
    def application(self) -> str:
        """How YARN calls it; empty until it has said so."""
        if not self._application:
            try:
                found = NAMED.search(self.log.read_bytes())
            except OSError:
                return ""
            self._application = found[0].decode() if found else ""
        return self._application

    def failed(self) -> int | None:
        """Return the exit status of one that failed; None otherwise."""
        return self.process.poll() or None


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What containers run with: the Java, the jars, and the JVM flags (class data archives) by kind of JVM."""

    java: Java
    jars: Jars
    flags: Mapping[Kind, tuple[str, ...]]


def submit(
    session: Session, yarn: Yarn, own: RunResources, pipeline: Pipeline, machine: Machine, *, log: Path
) -> Submission:
    """Start it; returns at once. Raises StackError if it cannot be started."""
    (own.folder / "tmp").mkdir(exist_ok=True)
    given = own.folder / "spark.properties"
    # It holds what only the processes of the run could see.
    given.touch(mode=0o600)
    ours = {**settings(own, pipeline, yarn, machine), **_variables(own, pipeline)}
    users = beside.read(own, pipeline)
    given.write_text(f"{users.defaults}{beside.properties(users.merged(ours))}", encoding="utf-8", errors=beside.ANY)
    command = [str(own.spark_home / "bin" / "spark-submit"), "--master", yarn.master, "--deploy-mode", "cluster"]
    command += ["--properties-file", str(given), pipeline.entry, *pipeline.args]
    env = service.environment(
        HADOOP_CONF_DIR=str(yarn.folders.conf),
        JAVA_HOME=str(machine.java.home),
        SPARK_HOME=str(own.spark_home),
        SPARK_CONF_DIR=str(class_data.conf()),
        SPARK_LOCAL_IP=LOOPBACK,
        SPARK_SUBMIT_OPTS=driver_process.jvm_flags(class_data.JIT, own.folder / "tmp"),
        SPARK_LAUNCHER_OPTS=" ".join(class_data.JIT),
        PYSPARK_PYTHON=sys.executable,
        TMPDIR=str(own.folder / "tmp"),
        HOME=str(own.folder),
        **{RUN: own.run_id},
    )
    name = f"spark-submit-{own.run_id}"
    return Submission(session.spawn(command, name=name, log=log, env=env, cwd=own.folder), log, own.run_id)


def settings(own: RunResources, pipeline: Pipeline, yarn: Yarn, machine: Machine) -> dict[str, str]:
    """Spark's configuration as the harness sets it: size, places, jars. Holds no secret."""
    return {
        **_common(own, pipeline, machine.jars),
        **as_elsewhere(own.folder / "tmp"),
        "spark.driver.memory": driver_process.MEMORY,
        "spark.driver.extraJavaOptions": driver_process.jvm_flags(machine.flags[Kind.DRIVER], own.folder / "tmp"),
        "spark.driver.extraClassPath": class_path(yarn.home, machine.jars),
        "spark.executor.instances": str(max(1, pipeline.executors)),
        "spark.executor.extraClassPath": class_path(yarn.home, machine.jars, class_data.conf()),
        "spark.executor.extraJavaOptions": " ".join([*machine.flags[Kind.EXECUTOR], "-XX:-UsePerfData"]),
        "spark.yarn.jars": f"local:{yarn.home}/jars/*",
        "spark.yarn.stagingDir": (own.folder / "staging").as_uri(),
        "spark.yarn.submit.waitAppCompletion": "false",
        # For a program that is slow to ask for its session: 100 s by default.
        "spark.yarn.am.waitTime": "300s",
        "spark.yarn.tags": own.run_id,
        ATTEMPTS: str(attempts(pipeline) or MOST),
    }


def as_elsewhere(temporary: Path) -> dict[str, str]:
    """Hadoop's settings that a pipeline has on other stacks, in place of those that containers get with the daemons':
    it connects to a NameNode as they do, and puts what it is about to send into the run's folder."""
    given = {**IPC_DEFAULTS, "hadoop.tmp.dir": str(temporary)}
    return {f"spark.hadoop.{name}": value for name, value in given.items()}


def class_path(home: Path, jars: Jars, *conf: Path) -> str:
    """Return the connector's jars and Spark's own, as on other stacks: a class data archive fits whatever begins like
    it. YARN adds its own entries."""
    logging = sorted((home / "jars").glob("slf4j-api-*.jar"))
    folders = [f"{each}/" for each in conf]
    return os.pathsep.join([driver_process.class_path(jars), *folders, *map(str, logging), f"{home}/jars/*"])


def _common(own: RunResources, pipeline: Pipeline, jars: Jars) -> dict[str, str]:
    # One and the same environment for all attempts: a container's id tells which it is of.
    numbered = f"spark.executorEnv.{ATTEMPT}"
    given = driver_process.common(own, pipeline, jars, 1, beside.read(own, pipeline))
    return {name: value for name, value in given.items() if name != numbered}


def table(own: RunResources, pipeline: Pipeline, yarn: Yarn, machine: Machine) -> list[Change]:
    """Return what is changed of Spark. It holds no secret: variables of components are named alone."""
    executors = {f"spark.executorEnv.{name}": value for name, value in _executors(own).items()}
    conf = {**settings(own, pipeline, yarn, machine), **executors}
    return changes(conf, _master(own, pipeline), own, pipeline) + inherited({reaper.MARKER: OF_SESSION})


def _variables(own: RunResources, pipeline: Pipeline) -> dict[str, str]:
    """Return the environment of the containers, as settings."""
    driver = {**_master(own, pipeline), **own.environment, **pipeline.env}
    return {
        **{f"spark.yarn.appMasterEnv.{name}": quoted(value) for name, value in driver.items()},
        **{f"spark.executorEnv.{name}": value for name, value in _executors(own).items()},
    }


def _python(own: RunResources) -> dict[str, str]:
    # What a worker puts into a temporary folder would outlive a SIGKILL: that folder is the run's.
    return {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK, "TMPDIR": str(own.folder / "tmp")}


def _executors(own: RunResources) -> dict[str, str]:
    """Return what the harness adds to the environment of executors."""
    return {**_python(own), "PYTHONPATH": str(driver_process.package())}


def _master(own: RunResources, pipeline: Pipeline) -> dict[str, str]:
    """Return what the harness adds to the environment of ApplicationMaster, which is the driver."""
    return {
        **_python(own),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(Path(pipeline.entry).parent), str(driver_process.package())]),
        "PYTHONUNBUFFERED": "1",
        RUN: own.run_id,
        failpoint.FOLDER: str(own.folder / "failpoints"),
        **({AGENT: own.agent} if own.agent else {}),
    }


def quoted(value: str) -> str:
    """Return a value that the shell of a container reads as `value`."""
    return SHELL_READS.sub(r"\\\1", value)
