"""A Spark standalone cluster in containers: a master and two workers, ready when both workers are registered."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import wait
from harness.errors import StackError
from harness.hosts.container import JVM, START_S, Container
from harness.hosts.engine import Engine, Wanted
from harness.hosts.images import Image
from harness.machine import spark_versions
from harness.remote.http import json_page
from harness.stack import PROMISED_CORES

MASTER, MASTER_PAGE = 7077, 8080
WORKERS = ("worker-1", "worker-2")
SPARK_HOME = Path("/opt/spark")
VARIABLES = {
    "SPARK_HOME": str(SPARK_HOME),
    "SPARK_NO_DAEMONIZE": "1",
    "SPARK_DAEMON_MEMORY": "384m",
    "SPARK_DAEMON_JAVA_OPTS": f"{JVM} -Dspark.master.rest.enabled=false",
    "PYSPARK_PYTHON": "python3",
}
"""What master and workers have, and executors inherit."""


def _version() -> str:
    """Return that of the installed pyspark; where there is none, one that has an image."""
    with suppress(StackError):
        return spark_versions.installed()
    return spark_versions.PINNED["4.1"]


VERSION = _version()
IMAGE = Image("spark", f"apache/spark:{VERSION}-python3", f"onceproof/spark:{VERSION}")


@dataclass(frozen=True, kw_only=True)
class ContainerDefaults:
    """What every container of Spark is given: who it runs as, what it sees of this machine, and where among that the
    class archives are, or will be."""

    user: str
    passwd: Path
    folders: Mapping[Path, bool]
    class_archives: Path

    def wanted(self, name: str, command: list[str], **more: Any) -> Wanted:
        """Return a container of Spark's image."""
        image, files = IMAGE.name, {self.passwd: "/etc/passwd", **more.pop("files", {})}
        folders = {**self.folders, **more.pop("folders", {})}
        return Wanted(name=name, image=image, command=command, user=self.user, files=files, folders=folders, **more)


class SparkContainers:
    """A master and two workers."""

    def __init__(self, engine: Engine, defaults: ContainerDefaults, *, logs: Path) -> None:
        self._engine, self._defaults, self._logs = engine, defaults, logs
        self.master = f"spark://master:{MASTER}"
        self.containers: list[Container] = []
        self.workers: list[Container] = []

    def start(self) -> None:
        """Start them and return when both workers are registered. Raises StackError."""
        master = Container(
            self._engine, self._daemon("master", ["--webui-port", str(MASTER_PAGE)], ports={MASTER_PAGE: 0})
        )
        self.containers.append(master)
        page = f"http://{self._engine.host}:{master.port(MASTER_PAGE)}/json/"
        master.ready(lambda: _page(page), within_s=START_S)
        (self._logs / "executors").mkdir(exist_ok=True)
        each = PROMISED_CORES // len(WORKERS)
        size = ["--cores", str(each), "--memory", f"{each}g", "--work-dir", str(self._logs / "executors")]
        for name in WORKERS:
            self.workers.append(Container(self._engine, self._daemon(name, [*size, self.master])))
        self.containers += self.workers
        for worker in self.workers:
            worker.ready(lambda: self._registered(page), within_s=START_S)

    def version(self) -> str:
        """Return the version of the Spark in the image, by the name of its core. Raises StackError."""
        jars = self.workers[0].run("sh", "-c", f"ls {SPARK_HOME}/jars/spark-core_*.jar").split()
        return Path(jars[0]).stem.partition("-")[2].rpartition("-")[2] if jars else "none"

    def _daemon(self, name: str, arguments: list[str], **more: Any) -> Wanted:
        role = "master" if name == "master" else "worker"
        main = f"org.apache.spark.deploy.{role}.{role.title()}"
        return self._defaults.wanted(
            name,
            [str(SPARK_HOME / "bin" / "spark-class"), main, "--host", name, *arguments],
            environment=VARIABLES,
            folders={self._logs: True},
            **more,
        )

    def _registered(self, page: str) -> bool | wait.Waiting:
        seen = _page(page)
        if isinstance(seen, wait.Waiting):
            return seen
        alive = sorted(worker["host"] for worker in seen["workers"] if worker["state"] == "ALIVE")
        return alive == sorted(WORKERS) or wait.Waiting(f"workers alive: {alive}")


def _page(url: str) -> dict[str, Any] | wait.Waiting:
    try:
        return json_page(url)
    except (OSError, ValueError) as error:
        return wait.Waiting(f"the master's page: {error}")
