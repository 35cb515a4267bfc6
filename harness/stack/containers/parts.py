"""What runs in the containers: Kafka, Postgres, a Spark master and two workers, each ready when it answers its own
protocol."""

from __future__ import annotations

import json
import secrets
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2

from harness import wait
from harness.stack import images, kafka, postgres
from harness.stack.containers.box import Box
from harness.stack.containers.engine import Engine, Wanted
from harness.stack.databases import Databases
from harness.stack.ports import Port
from harness.stack.topics import Topics

START_S = 120.0
KAFKA_INSIDE, KAFKA_OUTSIDE = 19092, 9092
POSTGRES = 5432
MASTER, MASTER_PAGE = 7077, 8080
WORKERS = ("worker-1", "worker-2")
SPARK_HOME = Path("/opt/spark")
KAFKA_SETTINGS: Mapping[str, str] = {
    **kafka.SETTINGS,
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": f"INSIDE://:{KAFKA_INSIDE},OUTSIDE://:{KAFKA_OUTSIDE},CONTROLLER://:9093",
}
POSTGRES_SETTINGS = {
    name: postgres.SETTINGS[name]
    for name in ("max_connections", "max_prepared_transactions", "shared_buffers", "timezone", "log_timezone")
}
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""As in the stack `processes`: a short life made short; it changes nothing else."""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What every container of Spark stands on: who it runs as, what it sees of this machine, and where among that the
    class archives are, or will be, and the Python modules that we start workers with."""

    user: str
    passwd: Path
    folders: Mapping[Path, bool]
    archives: Path
    modules: Path

    def wanted(self, name: str, command: list[str], **more: Any) -> Wanted:
        """A container of Spark's image."""
        image, files = images.image("spark"), {self.passwd: "/etc/passwd"}
        folders = {**self.folders, **more.pop("folders", {})}
        return Wanted(name=name, image=image, command=command, user=self.user, files=files, folders=folders, **more)


class KafkaBox:
    """The broker: one listener for the harness, one for the other containers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._port = Port(kafka.wanted_port(), what="Kafka")
        self.cluster_id = secrets.token_urlsafe(16).replace("-", "A").replace("_", "B")
        self.topics = Topics(f"{engine.host}:{self._port.number}")
        self.inside = f"kafka:{KAFKA_INSIDE}"
        self.box: Box | None = None

    def start(self) -> None:
        """Start it and return when it answers and is the one that we started. Raises StackError."""
        settings = {
            **KAFKA_SETTINGS,
            "advertised.listeners": f"INSIDE://{self.inside},OUTSIDE://{self.topics.bootstrap}",
            "log.dirs": "/tmp/kafka-data",  # inside the container
        }
        environment = {variable(name): value for name, value in settings.items()}
        environment |= {"CLUSTER_ID": self.cluster_id, "KAFKA_HEAP_OPTS": "-Xmx256m", "KAFKA_JVM_PERFORMANCE_OPTS": JVM}
        command = ["/etc/kafka/docker/run"]
        self.box = Box(
            self._engine,
            Wanted(
                name="kafka",
                image=images.image("kafka"),
                command=command,
                environment=environment,
                ports={KAFKA_OUTSIDE: self._port.number},
            ),
        )
        self.box.ready(lambda: self.topics.serves(self.cluster_id), within_s=START_S)

    def close(self) -> None:
        """Close our connections and give the port back."""
        self.topics.close()
        self._port.release()


def variable(setting: str) -> str:
    """The environment variable that Kafka's image makes a setting from."""
    return "KAFKA_" + setting.replace("_", "__").replace("-", "___").replace(".", "_").upper()


class PostgresBox:
    """The database server."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._password = secrets.token_hex(16)
        self.box: Box | None = None

    def start(self) -> None:
        """Start it and return when it answers a query from outside and has our databases. Raises StackError."""
        command = ["postgres"]
        for name, value in POSTGRES_SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        who = {"POSTGRES_USER": postgres.USER, "POSTGRES_PASSWORD": self._password, "POSTGRES_DB": "postgres"}
        who["POSTGRES_INITDB_ARGS"] = "--encoding=UTF8 --locale=C"
        self.box = Box(
            self._engine,
            Wanted(
                name="postgres",
                image=images.image("postgres"),
                command=command,
                environment=who,
                ports={POSTGRES: 0},
            ),
        )
        self.databases = Databases(self._engine.host, self.box.port(POSTGRES), postgres.USER, self._password)
        self.inside = self.databases.at("postgres", POSTGRES)
        self.version = self.box.ready(self._answer, within_s=START_S)
        self.databases.make()

    def _answer(self) -> str | wait.Waiting:
        try:
            return self.databases.ask("show server_version")
        except psycopg2.OperationalError as error:
            return wait.Waiting(str(error).strip())


class SparkBoxes:
    """A master and two workers."""

    def __init__(self, engine: Engine, ground: Ground, *, logs: Path, executors: int) -> None:
        self._engine, self._ground, self._logs = engine, ground, logs
        # Twice what the executors need: a killed driver's share is still counted while the next one starts.
        self.cores = max(8, 4 * executors)
        self.master = f"spark://master:{MASTER}"
        self.boxes: list[Box] = []
        self.workers: list[Box] = []

    def start(self) -> None:
        """Start them and return when both workers are registered. Raises StackError."""
        master = Box(self._engine, self._daemon("master", ["--webui-port", str(MASTER_PAGE)], ports={MASTER_PAGE: 0}))
        self.boxes.append(master)
        page = f"http://{self._engine.host}:{master.port(MASTER_PAGE)}/json/"
        master.ready(lambda: _page(page), within_s=START_S)
        (self._logs / "executors").mkdir(exist_ok=True)
        each = self.cores // len(WORKERS)
        size = ["--cores", str(each), "--memory", f"{each}g", "--work-dir", str(self._logs / "executors")]
        for name in WORKERS:
            self.workers.append(Box(self._engine, self._daemon(name, [*size, self.master])))
        self.boxes += self.workers
        for worker in self.workers:
            worker.ready(lambda: self._registered(page), within_s=START_S)

    def version(self) -> str:
        """The version of the Spark in the image, by the name of its core. Raises StackError."""
        jars = self.workers[0].run("sh", "-c", f"ls {SPARK_HOME}/jars/spark-core_*.jar").split()
        return Path(jars[0]).stem.partition("-")[2].rpartition("-")[2] if jars else "none"

    def _daemon(self, name: str, arguments: list[str], **more: Any) -> Wanted:
        role = "master" if name == "master" else "worker"
        main = f"org.apache.spark.deploy.{role}.{role.title()}"
        return self._ground.wanted(
            name,
            [str(SPARK_HOME / "bin" / "spark-class"), main, "--host", name, *arguments],
            environment={
                "SPARK_HOME": str(SPARK_HOME),
                "SPARK_NO_DAEMONIZE": "1",
                "SPARK_DAEMON_MEMORY": "384m",
                "SPARK_DAEMON_JAVA_OPTS": f"{JVM} -Dspark.master.rest.enabled=false",
                "PYSPARK_PYTHON": "python3",
            },
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
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5) as page:
            found: dict[str, Any] = json.load(page)
            return found
    except (OSError, ValueError) as error:
        return wait.Waiting(f"the master's page: {error}")
