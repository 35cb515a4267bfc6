"""The source `kafka`: the run's own topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from harness.checkpoint import Offsets
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusal, Refusals
from harness.resources import Resources, part
from harness.scenario import Input
from harness.sources.base import OpenSource, Sender

if TYPE_CHECKING:
    # Scenario files are read without a client of any server.
    from harness.components.kafka.run_topic import Places, Topic

LABEL = "kafka"
PARTITIONS = 3


class Parted(Shape):
    """How many partitions the topic has; how many topics there are, and when the last of them is made."""

    partitions: Annotated[int, v.whole(1, 1000), Field(description="how many partitions each topic has")] = PARTITIONS
    topics: Annotated[int, v.whole(1, 100), Field(description="how many topics the records are spread over")] = 1
    created_at: Annotated[
        int | None, v.whole(1, 1_000_000), Field(description="the last topic is made when so many records are sent")
    ] = None


def offsets_of(places: Places, line: str) -> Offsets | None:
    """Return next offsets of the topics in a line of the offset log; None if the line names other topics, or none."""
    try:
        parsed: Any = json.loads(line)
    except json.JSONDecodeError:
        return None
    ours = {topic: parsed[topic] for topic in places.topics if topic in parsed} if isinstance(parsed, dict) else {}
    if not ours or not all(isinstance(offsets, dict) for offsets in ours.values()):
        return None
    named = [(topic, int(part), int(offset)) for topic, offsets in ours.items() for part, offset in offsets.items()]
    return places.numbered(named)


@dataclass(frozen=True)
class OpenTopic:
    """The topic of one run, or several."""

    at: Topic

    def offsets(self, line: str, log: Path) -> Offsets | None:
        """A line of Spark's Kafka source: `{"topic": {"0": 17}}`."""
        return offsets_of(self.at.places, line)

    def sender(self) -> Sender:
        """Return an idempotent one, acks=all. Raises StackError."""
        from harness.components.kafka.sender import TopicSender

        return TopicSender(self.at.bootstrap, self.at.places, last=self.at.last)

    def ends(self) -> Offsets:
        """As the broker tells them. Raises StackError."""
        from harness.components.kafka.readback import end_offsets

        return end_offsets(self.at)

    def read_back(self, path: Path, *, within_s: float) -> Offsets:
        """As a reader of committed records sees it."""
        from harness.components.kafka.readback import read_back

        return read_back(self.at.bootstrap, self.at.places, path, there=self.at.there, within_s=within_s)


class KafkaTopic:
    """Read by Spark's Kafka source, or by the pipeline itself."""

    label = LABEL
    about = About(
        name="kafka",
        summary="a topic of the run's own, or several",
        example="{source: kafka, partitions: 3}",
        options=Parted,
    )

    def requested_parts(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """Return a topic with so many partitions, or several."""
        return {self.label: {"partitions": PARTITIONS, **given.source_options}}

    def refusals(self, options: Mapping[str, Any], records: int | None) -> Refusals:
        """The last of several topics is made while there are records left for it."""
        created_at = options.get("created_at")
        if created_at is not None and options.get("topics", 1) < 2:
            yield Refusal("created_at", "means nothing for one topic: ask for `topics: 2`")
        elif created_at is not None and records is not None and created_at >= records:
            yield Refusal("created_at", f"{created_at} leaves no record for the last topic: {records} are sent")

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """Return the topic, or the topics."""
        return OpenTopic(part(own, self.label).at)


KIND = KafkaTopic()
