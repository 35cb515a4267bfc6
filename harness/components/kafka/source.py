"""The source `kafka`: the run's own topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from harness.checkpoint import Offsets
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About
from harness.resources import Resources, part
from harness.scenario import Input
from harness.sources.base import OpenSource, Sender

if TYPE_CHECKING:
    # Scenario files are read without a client of any server.
    from harness.components.kafka.run_topic import Topic

LABEL = "kafka"
PARTITIONS = 3


class Parted(Shape):
    """How many partitions the topic has."""

    partitions: Annotated[int, v.whole(1, 1000)] = PARTITIONS


def offsets_of(topic: str, line: str) -> Offsets | None:
    """Next offsets of a topic in a line of the offset log; None if the line names another topic, or none."""
    try:
        said: Any = json.loads(line)
    except json.JSONDecodeError:
        return None
    if not isinstance(said, dict) or not isinstance(said.get(topic), dict):
        return None
    return {int(partition): int(offset) for partition, offset in said[topic].items()}


@dataclass(frozen=True)
class OpenTopic:
    """The topic of one run."""

    at: Topic

    def offsets(self, line: str, log: Path) -> Offsets | None:
        """A line of Spark's Kafka source: `{"topic": {"0": 17}}`."""
        return offsets_of(self.at.topic, line)

    def sender(self) -> Sender:
        """An idempotent one, acks=all. Raises StackError."""
        from harness.components.kafka.sender import TopicSender

        return TopicSender(self.at.bootstrap, self.at.topic, partitions=self.at.partitions)

    def ends(self) -> Offsets:
        """As the broker tells them. Raises StackError."""
        from harness.components.kafka.readback import end_offsets

        return end_offsets(self.at)

    def read_back(self, path: Path, *, within_s: float) -> Offsets:
        """As a reader of committed records sees it."""
        from harness.components.kafka.readback import read_back

        return read_back(self.at.bootstrap, self.at.topic, path, within_s=within_s)


class KafkaTopic:
    """Read by Spark's Kafka source, or by the pipeline itself."""

    about = About(
        name="kafka",
        summary="a topic of the run's own",
        example="{source: kafka, partitions: 3}",
        options=Parted,
    )

    def asks(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """A topic with so many partitions."""
        return {LABEL: {"partitions": given.source_options.get("partitions", PARTITIONS)}}

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """The topic."""
        return OpenTopic(part(own, LABEL).at)


KIND = KafkaTopic()
