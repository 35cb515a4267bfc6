"""A Spark standalone cluster on loopback: one master and one worker, from the pyspark wheel, started by Java directly.

The worker's cores and memory are what it may promise to executors, not what the machine has. It starts once the
master listens: a worker that knocks too early waits 5 to 15 s before it knocks again. Ready means: the master says
that our worker is registered and alive.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import wait
from harness.hosts import service
from harness.hosts.ports import LOOPBACK, Port
from harness.machine import class_data
from harness.machine.jars import scala_version, spark_home
from harness.machine.java import Java
from harness.machine.spark_versions import SparkVersion
from harness.remote.http import json_page
from harness.session import reaper
from harness.session.session import Session
from harness.stack import PROMISED_CORES

START_S = 90.0
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = b"CoarseGrainedExecutorBackend"
SETTINGS = {
    "spark.master.rest.enabled": "false",
    # A taken port is to be an error, not a silent move to the next one.
    "spark.port.maxRetries": "0",
}
"""What we set on the daemons; goes into run.json."""


class Spark:
    """Master and worker. `flags` are more JVM flags for both (a class data archive). `version` is another Spark version
    than the installed one, with its own Python."""

    def __init__(
        self,
        session: Session,
        java: Java,
        *,
        logs: Path,
        flags: Sequence[str] = (),
        version: SparkVersion | None = None,
    ) -> None:
        self.name = f"spark-{version.name}" if version else "spark"
        self._session, self._java, self._flags = session, java, tuple(flags)
        self._ports = {name: Port(what=f"Spark's {name}") for name in ("master", "master-ui", "worker", "worker-ui")}
        self._running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        self._logs = logs
        self.home = version.wheel if version else spark_home()
        self._version = version
        self._python = str(version.python) if version else sys.executable
        self.folder = session.folder / self.name
        # Two masters may give two applications the same id.
        self._work = logs / "executors" / version.name if version else logs / "executors"

    @property
    def master(self) -> str:
        """`spark://host:port`."""
        return f"spark://{self._ports['master']}"

    def start(self) -> None:
        """Start both and return when the worker is registered. Raises StackError."""
        for part in ("conf", "local", "tmp"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        master, log = self._daemon("master", MASTER, [])
        service.ready(f"{self.name}-master", master, log, self._ports["master"].open, within_s=START_S)
        work = ["--work-dir", str(self._work), "--cores", str(PROMISED_CORES), "--memory", f"{PROMISED_CORES}g"]
        worker, log = self._daemon("worker", WORKER, [*work, self.master])
        service.ready(f"{self.name}-worker", worker, log, self._registered, within_s=START_S)

    def check(self) -> None:
        """Raise StackError if one of them is dead."""
        for part, (process, log) in self._running.items():
            service.check(f"{self.name}-{part}", process, log)

    def close(self) -> None:
        """Give the ports back; ending the processes is the session's work."""
        for port in self._ports.values():
            port.release()

    @property
    def modules(self) -> Path:
        """The folder of Python modules that executors of another Spark version find."""
        return self.folder / "python"

    @property
    def worker(self) -> reaper.ProcessId | None:
        """The worker's process; None where it does not run."""
        return reaper.identify(self._running["worker"][0].pid) if "worker" in self._running else None

    def executors(self, *marks: str) -> list[reaper.ProcessId]:
        """Return the executors whose environment holds each of the marks (`NAME=value`), oldest first."""
        worker = self.worker
        return executors_under({worker} if worker else set(), *marks)

    def _daemon(self, part: str, main: str, arguments: list[str]) -> tuple[subprocess.Popen[bytes], Path]:
        log = self._logs / f"{self.name}-{part}.log"
        settings = [f"-D{name}={value}" for name, value in SETTINGS.items()]
        argv = [str(self._java.executable), "-Xmx384m", *service.JVM, *self._flags, *settings, "-cp", self.class_path()]
        where = ["--host", LOOPBACK, "--port", str(self._ports[part].number)]
        where += ["--webui-port", str(self._ports[f"{part}-ui"].number)]
        process = self._session.spawn(
            [*argv, main, *where, *arguments],
            name=f"{self.name}-{part}",
            log=log,
            env=service.environment(**self.variables()),
            cwd=self.folder,
        )
        self._running[part] = (process, log)
        return process, log

    def class_path(self) -> str:
        """Spark's jars one by one, in a fixed order: a wildcard would leave the order to the file system."""
        return os.pathsep.join(str(jar) for jar in sorted((self.home / "jars").glob("*.jar")))

    def variables(self) -> dict[str, str]:
        """Return what executors inherit from the worker. What they put into a temporary folder would outlive a
        SIGKILL, so that folder is the session's."""
        temporary = self.folder / "tmp"
        return dict(
            TMPDIR=str(temporary),
            JDK_JAVA_OPTIONS=f'"-Djava.io.tmpdir={temporary}" -XX:-UsePerfData',
            JAVA_HOME=str(self._java.home),
            SPARK_HOME=str(self.home),
            SPARK_CONF_DIR=str(class_data.conf()),
            SPARK_LOCAL_DIRS=str(self.folder / "local"),
            SPARK_LOCAL_IP=LOOPBACK,
            # Spark's scripts set it; without it the worker cannot put an executor's command line together.
            SPARK_SCALA_VERSION=scala_version(self.home),
            PYSPARK_PYTHON=self._python,
            **({"PYTHONPATH": str(self.modules)} if self._version else {}),
        )

    def _registered(self) -> bool | wait.Waiting:
        try:
            seen = json_page(f"http://{self._ports['master-ui']}/json/")
        except (OSError, ValueError) as error:
            return wait.Waiting(f"the master's page: {error}")
        alive = [worker["port"] for worker in seen["workers"] if worker["state"] == "ALIVE"]
        if seen["url"] == self.master and self._ports["worker"].number in alive:
            return True
        return wait.Waiting(f"{seen['url']} with workers alive at {alive}")


def executors_under(workers: set[reaper.ProcessId], *marks: str) -> list[reaper.ProcessId]:
    """Return the executors that descend from `workers` and whose environment holds each of the marks (`NAME=value`),
    oldest first."""
    under = reaper.descendants(reaper.table(), workers)
    return sorted((each for each in under if _is_executor(each.pid, *marks)), key=lambda each: each.start)


def _is_executor(pid: int, *marks: str) -> bool:
    try:
        command = (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False
    return EXECUTOR in command and reaper.carries(pid, *marks)
