"""Kafka, a broker: each run has its own topic and consumer group.

process         one as a child process
container       one in a container
access          a broker with TLS or a login; one that is there already
run_topic       a run's own topics and group
topics          asks a broker to make and drop topics
consumer_group  where a pipeline stands that commits its offsets to its group
source          the topic as the source of a run
sender          sends the records and takes the answers
readback        reads a topic as committed
sink            a topic that the pipeline writes into
fault           kills the broker
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from harness.component import Addressed, Boxed, Followed, MachineCheck, Mark, Server, Started
from harness.errors import StackError
from harness.fields.shape import Shape
from harness.hosts.images import Image
from harness.kinds import About
from harness.resources import Resources

if TYPE_CHECKING:
    from harness.hosts.engine import Engine
    from harness.hosts.processes import ProcessHost


class Kafka:
    """One node."""

    about = About(
        name="kafka",
        summary="a broker; a run has its own topic and consumer group",
        example='args: ["{kafka.bootstrap}", "{topic}"]',
        options=Shape,
    )
    gives = ("bootstrap", "topic", "topics", "pattern", "group")
    marks = (
        Mark(text="{kafka.bootstrap}", option="kafka.bootstrap.servers"),
        Mark(text="{kafka.bootstrap}", option="bootstrap.servers"),
        Mark(text="{kafka.bootstrap}", call="kafka.KafkaProducer", argument="bootstrap_servers"),
        Mark(text="{topic}", option="subscribe"),
        Mark(text="{kafka.pattern}", option="subscribePattern"),
        Mark(text="{kafka.$name.topic}", option="topic", format="kafka", writes=True),
    )
    bare = ("topic", "topics", "group")
    by_placeholder = True
    client = "kafka"
    image = Image("kafka", "apache/kafka:4.2.0", "onceproof/kafka:4.2.0")

    @property
    def machine_checks(self) -> tuple[MachineCheck, ...]:
        """The connector has to be there for the installed Spark."""
        return (
            MachineCheck("spark", "a pyspark whose Kafka connectors exist", _spark, "pip install 'pyspark>=3.5,<4.3'"),
        )

    def as_processes(self, host: ProcessHost) -> Started:
        """From the jars."""
        from harness.components.kafka.process import Kafka as Broker
        from harness.machine.class_data import Kind

        return Broker(host.session, host.java, host.jars, logs=host.logs, flags=host.flags[Kind.BROKER])

    def as_container(self, engine: Engine) -> Boxed:
        """With one listener for the harness and one for the other containers."""
        from harness.components.kafka.container import KafkaBox

        return KafkaBox(engine, self.image.name)

    def at(self, address: str) -> Addressed:
        """Return host and port, or several with commas; or with TLS and a login."""
        from harness.components.kafka.access.there import KafkaThere

        return KafkaThere(address)

    def borrowed(self, text: str) -> Server:
        """Of another process of ours, by host and port."""
        return self.at(text)

    def group(self, own: Resources) -> Followed:
        """Return the run's own group."""
        from harness.components.kafka.consumer_group import followed

        return followed(own.at)


def _spark() -> str:
    from harness.machine import jars, spark_versions

    paths = [path for path in jars.declared() if path.partition("-")[0] == "spark"]
    near: dict[str, None] = {}
    for path in paths:
        # Some of them cannot be had for each Spark.
        with suppress(StackError):
            near |= dict.fromkeys(jars.neighbours(path))
    with_them = f"with the nearest that Maven Central has: {', '.join(near)}" if near else "with its own"
    return f"pyspark {spark_versions.installed()}, {with_them}"


KIND = Kafka()
