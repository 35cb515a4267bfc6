"""The source `kafka`: the run's own topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.checkpoint import Offsets
from harness.components.kafka.provision import Topic
from harness.fields.shape import Shape
from harness.kinds import About
from harness.resources import Resources, part
from harness.run_folder.ledger import Attempts
from harness.scenario import Input
from harness.sources.base import OpenSource, Producer
from harness.workloads.base import Workload

LABEL = "kafka"


@dataclass(frozen=True)
class OpenTopic:
    """The topic of one run."""

    at: Topic

    @property
    def name(self) -> str:
        """Its name."""
        return self.at.topic

    def producer(self, workload: Workload, attempts: Attempts) -> Producer:
        """An idempotent one, acks=all. Raises StackError."""
        from harness.components.kafka import producer

        at = self.at
        return producer.Producer(at.bootstrap, at.topic, workload, attempts, partitions=at.partitions)

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

    about = About(name="kafka", summary="a topic of the run's own", example="input: {partitions: 3}", options=Shape)

    def asks(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """A topic with so many partitions."""
        return {LABEL: {"partitions": given.partitions}}

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """The topic."""
        return OpenTopic(part(own, LABEL).at)


KIND = KafkaTopic()
