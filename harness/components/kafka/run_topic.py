"""A run's own topic and consumer group."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.components.kafka.topics import Topics
from harness.resources import Resources, labelled


@dataclass(frozen=True, kw_only=True)
class Topic:
    """How the harness finds it; `topics` asks its broker."""

    bootstrap: str
    topic: str
    group: str
    partitions: int
    topics: Topics = field(repr=False, compare=False)


class Provides:
    """What every broker does for a run. `inside` is the address that the pipeline's processes are given; `shared` says
    that it is somebody else's: what cannot be dropped there is an error."""

    topics: Topics
    inside: str
    shared = False

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """A topic for each part, with so many `partitions`. Raises StackError."""
        return {name: self._made(run_id, name, int(asked.get("partitions", 1))) for name, asked in parts.items()}

    def _made(self, run_id: str, name: str, partitions: int) -> Resources:
        topic = called(run_id, name)
        self.topics.create(topic, partitions=partitions)
        return Resources(
            label=labelled("kafka", name),
            at=Topic(
                bootstrap=self.topics.bootstrap, topic=topic, group=topic, partitions=partitions, topics=self.topics
            ),
            placeholders={"bootstrap": self.inside, "topic": topic, "group": topic},
            bare=() if name else ("topic", "group"),
            shared=self.shared,
        )

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Delete the topics and forget the groups. Raises StackError, once everything was tried."""
        with contextlib.ExitStack() as steps:
            for name in names:
                topic = called(run_id, name)
                steps.callback(self.topics.delete_group, topic, sure=self.shared)
                steps.callback(self.topics.delete, topic, sure=self.shared)


def called(run_id: str, name: str) -> str:
    """What a run's topic is called, and its group."""
    return "-".join(filter(None, ("onceproof", run_id, name)))
