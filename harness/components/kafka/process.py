"""Kafka as a child process: one KRaft node on loopback, from the jars of `harness.machine.jars`.

Formatting its storage costs a JVM, so that is done once per set of jars, and each session copies the result under
another cluster id. Ready means: it answers a metadata request, and with our cluster id.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.components.kafka.run_topic import Provides
from harness.components.kafka.topics import Topics
from harness.errors import StackError
from harness.hosts import service
from harness.hosts.ports import Port
from harness.hosts.server_process import ServerProcess
from harness.machine import cache
from harness.machine.jars import Jars, declared, spark_home
from harness.machine.java import Java
from harness.session.session import Session
from harness.wait import locked

COORDINATE = next(each for each in declared()["broker"] if each.startswith("org.apache.kafka:"))
VERSION = COORDINATE.rpartition(":")[2]
PORT_VARIABLE = "ONCEPROOF_KAFKA_PORT"
START_S = 120.0
FORMAT_S = 120.0
SETTINGS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # The default lets a new group wait 3 s for more members.
    "group.initial.rebalance.delay.ms": "0",
    # After a SIGKILL the old attempt counts as alive until its session lapses: 9 s by default.
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    "controller.quorum.election.timeout.ms": "200",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
    "log.cleaner.enable": "false",
}
"""What we set besides addresses and folders; goes into run.json."""


class Kafka(Provides, ServerProcess):
    """One broker. `flags` are more JVM flags (a class data archive). Raises StackError when its port is taken.

    `protocol` is that of its clients' listener; what such a listener needs, `login` says at each start."""

    name = "kafka"
    protocol = "PLAINTEXT"

    def __init__(self, session: Session, java: Java, jars: Jars, *, logs: Path, flags: Sequence[str] = ()) -> None:
        self._session, self._java, self._jars, self._flags = session, java, jars, tuple(flags)
        self._port = Port(self.wanted_port(), what="Kafka")
        self._controller_port = Port(what="Kafka's controller")
        self.folder = session.folder / self.name
        self.cluster_id = _random_id()
        self.log = logs / f"{self.name}.log"
        self.topics = Topics(self.bootstrap)
        self.inside = self.bootstrap

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return str(self._port)

    def start(self) -> None:
        """Start it and return when it answers. Raises StackError."""
        if self._port.open():
            raise StackError(f"port {self._port.number} was asked for Kafka, but another program listens there")
        again = self.folder.exists()
        if not again:
            self._lay_out()
        self._write_settings()
        argv = [str(self._java.executable), *self.jvm_flags(), "-cp", self.class_path(), "kafka.Kafka"]
        self._process = self._session.spawn(
            [*argv, str(self.folder / "server.properties")],
            name=self.name, log=self.log, env=service.environment(), cwd=self.folder,
        )  # fmt: skip
        service.ready(self.name, self._process, self.log, self._port.open, within_s=START_S)
        service.ready(self.name, self._process, self.log, lambda: self.topics.serves(self.cluster_id), within_s=START_S)
        if again:
            service.ready(self.name, self._process, self.log, self.topics.led, within_s=START_S)

    def stop(self, *, grace_s: float = 0.0) -> None:
        """End the process; its data stays, so that `start` brings it back."""
        self.topics.close()
        super().stop(grace_s=grace_s)

    def login(self) -> Mapping[str, str]:
        """Return what its listener needs besides: nothing."""
        return {}

    def wanted_port(self) -> int:
        """Return the port that the user asks for."""
        return wanted_port()

    def lent(self) -> str:
        """Return where it listens."""
        return self.bootstrap

    def describe(self) -> Mapping[str, Any]:
        """Return version, and what we set."""
        return {"version": VERSION, "cluster_id": self.cluster_id, "settings": dict(SETTINGS)}

    def close(self) -> None:
        """Close our connections and give the ports back; ending the process is the session's work."""
        self.topics.close()
        super().close()
        self._controller_port.release()

    def jvm_flags(self) -> list[str]:
        """Return the JVM's flags, without class path and main class."""
        return [
            "-Xmx256m", *service.JVM, *self._flags, f"-Djava.io.tmpdir={self.folder}",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}", "-Djava.awt.headless=true",
        ]  # fmt: skip

    def class_path(self) -> str:
        """Return the broker's jars, one by one, in a fixed order."""
        return os.pathsep.join(map(str, jars_of(self._jars)))

    def _lay_out(self) -> None:
        self.folder.mkdir()
        shutil.copytree(self._template(), self.folder / "data")
        meta = self.folder / "data" / "meta.properties"
        meta.write_text(re.sub(r"(?m)^cluster\.id=.*$", f"cluster.id={self.cluster_id}", meta.read_text()))
        (self.folder / "log4j2.properties").write_text(service.LOGGING)

    def _write_settings(self) -> None:
        settings = {
            **SETTINGS,
            "log.dirs": str(self.folder / "data"),
            "listener.security.protocol.map": f"{self.protocol}:{self.protocol},CONTROLLER:PLAINTEXT",
            "security.inter.broker.protocol": self.protocol,
            "listeners": f"{self.protocol}://{self._port},CONTROLLER://{self._controller_port}",
            "advertised.listeners": f"{self.protocol}://{self._port}",
            "controller.quorum.voters": f"1@{self._controller_port}",
            **self.login(),
        }
        _write_properties(self.folder / "server.properties", settings)

    def _template(self) -> Path:
        """Return a formatted storage folder, made once per set of jars."""
        target = cache.folder("kafka-storage") / self._jars.digest[:16]
        if not (target / "meta.properties").is_file():
            with locked(target.with_suffix(".lock"), within_s=FORMAT_S):
                if not (target / "meta.properties").is_file():
                    self._format(target)
        return target

    def _format(self, target: Path) -> None:
        with cache.filling(target) as temporary:
            settings = {
                **SETTINGS,
                "log.dirs": str(temporary),
                "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
                "controller.quorum.voters": "1@127.0.0.1:9093",
            }
            _write_properties(self.folder / "format.properties", settings)
            argv = [str(self._java.executable), *service.JVM, "-cp", self.class_path(), "kafka.tools.StorageTool"]
            service.finish(
                self._session, [*argv, "format", "-t", _random_id(), "-c", str(self.folder / "format.properties")],
                name="kafka-format", log=self.log, within_s=FORMAT_S,
            )  # fmt: skip


def jars_of(jars: Jars) -> list[Path]:
    """Return the broker's jars, with pyspark's slf4j in front: the broker's own comes without anything that writes."""
    spark = spark_home() / "jars"
    logs = [next(iter(sorted(spark.glob(name))), None) for name in ("slf4j-api-*.jar", "log4j-slf4j2-impl-*.jar")]
    return [*filter(None, logs), *jars.broker]


def wanted_port() -> int:
    """Return the port that the user asks for; 0 for any. Raises StackError."""
    text = os.environ.get(PORT_VARIABLE, "0")
    if not text.isdigit():
        raise StackError(f"{PORT_VARIABLE} must be a port number, found {text!r}; unset it for any free port")
    return int(text)


def _random_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


def _write_properties(path: Path, settings: Mapping[str, str]) -> None:
    path.touch(mode=0o600)  # a login may be in it
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
