"""Asks a broker to make and drop topics, and where a topic ends or a group stands. Works on any bootstrap address."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import GroupIdNotFoundError, KafkaError, TopicAlreadyExistsError, UnknownTopicOrPartitionError
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer.offsets import IsolationLevel

from harness import wait
from harness.components.kafka.access import Address
from harness.components.kafka.access import client as client_of
from harness.errors import StackError, WaitError

ANSWER_S = 30.0
MEMBER_S = 60.0
"""Longer than the session of a consumer that was killed (45 s)."""

# Without a handler the client's retries while a broker starts would be printed to the terminal.
logging.getLogger("kafka").addHandler(logging.NullHandler())


@contextmanager
def whole() -> Iterator[Callable[..., KafkaNetClient]]:
    """Gives the `kafka_client` of one client of the library, whose constructor asks the broker. Where it raises, the
    library leaves a thread that goes on asking, and its sockets: they end with this."""
    made: list[KafkaNetClient] = []

    def client(**configs: Any) -> KafkaNetClient:
        made.append(KafkaNetClient(**configs))
        return made[-1]

    try:
        yield client
    except BaseException:
        for each in made:
            each.close()
        raise


class Topics:
    """One connection, made at the first question. Safe to use from several threads once it is made."""

    def __init__(self, bootstrap: Address) -> None:
        self.bootstrap = bootstrap
        self._admin: KafkaAdminClient | None = None

    def cluster(self) -> dict[str, Any]:
        """`cluster_id` and `brokers` as the broker tells them. Raises KafkaError when it does not answer."""
        try:
            seen: dict[str, Any] = self._connected().describe_cluster()
        except KafkaError:
            self.close()
            raise
        return seen

    def serves(self, cluster_id: str) -> bool | wait.Waiting:
        """Return whether a broker answers and is fit for work. Raises StackError if it is one of another cluster."""
        try:
            seen = self.cluster()
        except KafkaError as error:
            return wait.Waiting(f"{type(error).__name__}: {error}")
        if seen["cluster_id"] != cluster_id:
            raise StackError(f"{self.bootstrap} answers for cluster {seen['cluster_id']}, which is not ours; run again")
        live = [broker for broker in seen["brokers"] if not broker.get("is_fenced")]
        return True if live else wait.Waiting("the broker is still fenced")

    def led(self) -> bool | wait.Waiting:
        """Return whether each partition of every topic has a leader: after a restart they come one by one."""
        try:
            found = self._connected().describe_topics()
        except KafkaError as error:
            self.close()
            return wait.Waiting(f"{type(error).__name__}: {error}")
        alone = [seen["name"] for seen in found for part in seen["partitions"] if part["leader_id"] < 0]
        return wait.Waiting(f"no leader yet for a partition of {', '.join(dict.fromkeys(alone))}") if alone else True

    def create(self, topic: str, *, partitions: int) -> None:
        """Make a topic that is not there, and wait for a leader of each partition. Raises StackError, WaitError."""
        try:
            self._connected().create_topics({topic: {"num_partitions": partitions, "replication_factor": 1}})
        except TopicAlreadyExistsError:
            # An earlier request was carried out, and its answer did not come.
            pass
        except KafkaError as error:
            raise StackError(f"cannot create topic {topic} with {partitions} partitions: {error}") from error
        wait.until(f"leaders of topic {topic}", lambda: self._led(topic, partitions), within_s=ANSWER_S, every_s=0.01)

    def delete(self, topic: str, *, sure: bool = False) -> None:
        """Delete a topic and those that are counted on from it (`NAME.2`); silent if there is none. Unless it must be
        `sure`, silent as well if there is no broker to ask: the stack's end takes its topics along. Raises StackError
        if one is still there."""
        try:
            if found := self._counted_on(topic):
                self._connected().delete_topics(found)
            if sure:
                gone = lambda: not self._counted_on(topic)  # noqa: E731
                wait.until(f"topic {topic} to be gone", gone, within_s=ANSWER_S, every_s=0.1)
        except UnknownTopicOrPartitionError:
            return
        except (KafkaError, WaitError) as error:
            if sure:
                raise StackError(f"cannot delete topic {topic}: {error}") from error

    def end_offsets(self, topic: str, *, committed: bool = False) -> dict[int, int]:
        """Return partition -> the offset that the next record will get, or, of what is `committed`, the one that the
        first open transaction begins at; empty if there is no such topic."""
        wanted = {TopicPartition(topic, number): OffsetSpec.LATEST for number in self._partitions(topic)}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        found = self._connected().list_partition_offsets(wanted, level) if wanted else {}
        return {place.partition: seen.offset for place, seen in found.items()}

    def open_transactions(self, topic: str, *, partitions: int) -> list[tuple[int, int, int]]:
        """Partition, producer, and the offset where its transaction begins, of each that is open there. Raises
        KafkaError, also if a partition has no leader."""
        found = self._connected().describe_producers([TopicPartition(topic, number) for number in range(partitions)])
        return sorted(
            (place.partition, each.producer_id, each.current_transaction_start_offset)
            for place, seen in found.items()
            for each in seen.active_producers
            if each.current_transaction_start_offset >= 0
        )

    def delete_group(self, group: str, *, sure: bool = False) -> None:
        """Forget a consumer group; silent if there is none. Unless it must be `sure`, silent as well while a member is
        counted in: one that was killed is, until its session times out. Raises StackError if it stays."""
        try:
            if sure:
                wait.until(f"group {group} to be gone", lambda: self._forgotten(group), within_s=MEMBER_S, every_s=0.5)
            else:
                self._forgotten(group)
        except (KafkaError, WaitError) as error:
            if sure:
                raise StackError(f"cannot delete group {group}: {error}") from error

    def _forgotten(self, group: str) -> bool | wait.Waiting:
        # The answer for each group is the name of an error, or OK.
        try:
            answer = self._connected().delete_groups([group]).get(group, "OK")
        except KafkaError as error:
            # The first question about a group makes the broker create its offsets topic.
            if not error.retriable:
                raise
            return wait.Waiting(type(error).__name__)
        return answer in ("OK", GroupIdNotFoundError.__name__) or wait.Waiting(answer)

    def close(self) -> None:
        """Drop the connection; the next question makes a new one."""
        admin, self._admin = self._admin, None
        if admin is not None:
            with contextlib.suppress(Exception):
                admin.close()

    def _connected(self) -> KafkaAdminClient:
        if self._admin is None:
            with whole() as client:
                self._admin = KafkaAdminClient(
                    **client_of(self.bootstrap), client_id="onceproof", bootstrap_timeout_ms=5000,
                    request_timeout_ms=20_000, reconnect_backoff_max_ms=200, kafka_client=client,
                )  # fmt: skip
        return self._admin

    def _counted_on(self, topic: str) -> list[str]:
        return [name for name in self._connected().list_topics() if name == topic or name.startswith(f"{topic}.")]

    def _partitions(self, topic: str) -> list[int]:
        found = self._connected().describe_topics([topic])
        return [part["partition_index"] for seen in found for part in seen["partitions"] if part["leader_id"] >= 0]

    def _led(self, topic: str, partitions: int) -> bool | wait.Waiting:
        try:
            led = len(self._partitions(topic))
        except KafkaError as error:
            return wait.Waiting(f"{type(error).__name__}: {error}")
        return True if led == partitions else wait.Waiting(f"{led} of {partitions} partitions with a leader")
