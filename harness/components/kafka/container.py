"""Kafka in a container: one KRaft node, with one listener for the harness and one for the other containers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from harness.components.kafka import process
from harness.components.kafka.run_topic import Provides
from harness.components.kafka.topics import Topics
from harness.hosts.container import JVM, START_S, InContainer
from harness.hosts.engine import Engine, Wanted
from harness.hosts.ports import Port

INSIDE, OUTSIDE = 19092, 9092
SETTINGS: Mapping[str, str] = {
    **process.SETTINGS,
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": f"INSIDE://:{INSIDE},OUTSIDE://:{OUTSIDE},CONTROLLER://:9093",
}


class KafkaBox(Provides, InContainer):
    """The broker: one listener for the harness, one for the other containers."""

    port = INSIDE

    def __init__(self, engine: Engine, image: str) -> None:
        self._engine, self._image = engine, image
        self._port = Port(process.wanted_port(), what="Kafka")
        self.cluster_id = secrets.token_urlsafe(16).replace("-", "A").replace("_", "B")
        self.topics = Topics(f"{engine.host}:{self._port.number}")
        self.inside = f"kafka:{INSIDE}"

    def start(self) -> None:
        """Start it and return when it answers and is the one that we started. Raises StackError."""
        settings = {
            **SETTINGS,
            "advertised.listeners": f"INSIDE://{self.inside},OUTSIDE://{self.topics.bootstrap}",
            "log.dirs": "/tmp/kafka-data",  # inside the container
        }
        environment = {variable(name): value for name, value in settings.items()}
        environment |= {"CLUSTER_ID": self.cluster_id, "KAFKA_HEAP_OPTS": "-Xmx256m", "KAFKA_JVM_PERFORMANCE_OPTS": JVM}
        command = ["/etc/kafka/docker/run"]
        again = self.container is not None
        container = self._up(
            Wanted(
                name="kafka",
                image=self._image,
                command=command,
                environment=environment,
                ports={OUTSIDE: self._port.number},
            )
        )
        container.ready(lambda: self.topics.serves(self.cluster_id), within_s=START_S)
        if again:
            container.ready(self.topics.led, within_s=START_S)

    def stop(self) -> None:
        """SIGKILL to the broker, which `start` brings back on its data. Raises StackError."""
        self.topics.close()
        super().stop()

    def describe(self) -> Mapping[str, Any]:
        """Return which cluster it is, and what we set."""
        return {"cluster_id": self.cluster_id, "settings": dict(SETTINGS)}

    def close(self) -> None:
        """Close our connections and give the port back."""
        self.topics.close()
        self._port.release()


def variable(setting: str) -> str:
    """Return the environment variable that Kafka's image makes a setting from."""
    return "KAFKA_" + setting.replace("_", "__").replace("-", "___").replace(".", "_").upper()
