"""A run's own topic, or several, and its consumer group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from harness.components.kafka.access import Address, variables
from harness.components.kafka.topics import Topics
from harness.errors import StackError, WaitError
from harness.resources import GivesParts, Resources, labelled
from harness.wait import Waiting, until


class Places(NamedTuple):
    """The partitions of several topics, `each` of which has so many, counted on from topic to topic: what is one number
    wherever a run's offsets are kept."""

    topics: tuple[str, ...]
    each: int

    def number(self, topic: str, partition: int) -> int | None:
        """Of a partition; None if the topic is none of these."""
        return self.topics.index(topic) * self.each + partition if topic in self.topics else None

    def place(self, number: int) -> tuple[str, int]:
        """Return topic and partition."""
        topic, partition = divmod(number, self.each)
        return self.topics[topic], partition

    def numbered(self, offsets: Iterable[tuple[str, int, int]]) -> dict[int, int]:
        """Return offsets by number, of (topic, partition, offset); those of other topics are left out."""
        found = ((self.number(topic, partition), offset) for topic, partition, offset in offsets)
        return {number: offset for number, offset in found if number is not None}


@dataclass(kw_only=True)
class LastTopic:
    """The last of several topics, which `create` makes before record number `at` is sent: records before it go to the
    others. `made` once that is known."""

    at: int
    create: Callable[[], None]
    made: bool = False

    def make(self, *, within_s: float) -> None:
        """Try it until a broker has made it. Raises WaitError."""

        def created() -> bool | Waiting:
            try:
                self.create()
            except (StackError, WaitError) as error:
                return Waiting(str(error))
            return True

        until("the last topic to be made", created, within_s=within_s, every_s=0.5)
        self.made = True


@dataclass(frozen=True, kw_only=True)
class Topic:
    """How the harness finds it; `topics` asks its broker. A source may have `others` beside it, the last of which may
    be made while records are sent."""

    bootstrap: Address
    topic: str
    group: str
    partitions: int
    topics: Topics = field(repr=False, compare=False)
    others: tuple[str, ...] = ()
    last: LastTopic | None = field(default=None, repr=False, compare=False)

    @property
    def places(self) -> Places:
        """The partitions of all of its topics."""
        return Places((self.topic, *self.others), self.partitions)

    @property
    def there(self) -> tuple[str, ...]:
        """Its topics, without one that was not made."""
        return self.places.topics if self.last is None or self.last.made else self.places.topics[:-1]


class Provides(GivesParts):
    """What every broker does for a run. `inside` is the address that the pipeline's processes are given; `shared` says
    that it is the user's: what cannot be dropped there is an error. `component` is what its parts are called
    after, and `bare` the placeholders that stand without that; `secrets` are redacted."""

    topics: Topics
    inside: Address
    shared = False
    component = "kafka"
    bare: tuple[str, ...] = ("topic", "topics", "group")
    secrets: tuple[str, ...] = ()

    def _give(self, run_id: str, name: str, request: Mapping[str, Any]) -> Resources:
        """Make a topic with so many `partitions`; `topics` of them."""
        return self._made(run_id, name, **request)

    def _made(
        self, run_id: str, name: str, *, partitions: int = 1, topics: int = 1, created_at: int | None = None
    ) -> Resources:
        topic = called(run_id, name)
        others = tuple(f"{topic}.{number}" for number in range(2, topics + 1))
        create = partial(self.topics.create, partitions=partitions)
        last = None if created_at is None else LastTopic(at=created_at, create=partial(create, others[-1]))
        at = Topic(
            bootstrap=self.topics.bootstrap, topic=topic, group=topic, partitions=partitions, topics=self.topics,
            others=others, last=last,
        )  # fmt: skip
        for each in at.there:
            create(each)
        given = {"bootstrap": str(self.inside), "topic": topic, "group": topic, "topics": ",".join((topic, *others))}
        return Resources(
            label=labelled(self.component, name),
            at=at,
            placeholders={**given, "pattern": rf"{topic}(\.[0-9]+)?"},
            bare=() if name else self.bare,
            environment=variables(self.inside, self.component.upper()),
            secrets=self.secrets,
            shared=self.shared,
        )  # fmt: skip

    def _take(self, run_id: str, name: str) -> None:
        """Delete the topics and forget the group."""
        topic = called(run_id, name)
        try:
            self.topics.delete(topic, sure=self.shared)
        finally:
            self.topics.delete_group(topic, sure=self.shared)


def called(run_id: str, name: str) -> str:
    """Return what a run's topic is called, and its group."""
    return "-".join(filter(None, ("onceproof", run_id, name)))
