"""Sends records to a topic, or spreads them over several, and says of each what became of it.

An answer is *acknowledged* with its place. It is *failed* only where the record itself can never be taken or never left
this process. It is *unknown* for all else: a lost connection or a time-out may hide a record that was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, Protocol

from kafka import KafkaProducer
from kafka.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from kafka.partitioner import murmur2

from harness.components.kafka.access import Address
from harness.components.kafka.access import client as client_of
from harness.components.kafka.run_topic import LastTopic, Places
from harness.components.kafka.topics import whole
from harness.errors import HarnessError, StackError, WaitError
from harness.run_folder.ledger import Answer, State
from harness.wait import Deadline
from harness.workloads.base import Record

HEADER = "onceproof-seq"
"""Name of the header that carries a record's sequence number, 8 bytes big-endian."""
REFUSALS = (
    InvalidRecordError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
"""Errors that no retry and no earlier try of the same record can contradict."""
GRACE_S = 2.0


class Pending(Protocol):
    """The answer to one send, when it comes."""

    def get(self, timeout: float | None = None) -> Any:
        """Return an object with `topic`, `partition`, `offset`; raises the error, or KafkaTimeoutError after `timeout`
        s."""


class Client(Protocol):
    """What is used of `kafka.KafkaProducer`."""

    def send(self, topic: str, value: bytes, **more: Any) -> Pending: ...

    def close(self, timeout: float | None = None) -> None:
        """After `timeout` s what is still in flight is given up; nothing is sent once this has returned."""


class _Kafka(KafkaProducer):  # type: ignore[misc]
    """A client that lets itself be closed while the broker is silent.

    The one of the library flushes first, and when that fails it stays open, with a thread that still sends."""

    def flush(self, timeout: float | None = None) -> None:
        with suppress(KafkaError):
            super().flush(timeout)

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        super().close(timeout=timeout, null_logger=null_logger)
        if hasattr(self, "_sender"):  # not if it never connected; then it is closed by its finalizer
            self._sender.join(GRACE_S)


def connect(bootstrap: Address, *, answer_within_s: float) -> Client:
    """Return an idempotent client that gives every answer within `answer_within_s`. Raises StackError if there is no
    answer."""
    limit_ms = int(answer_within_s * 1000)
    try:
        with whole() as connections:
            client: Client = _Kafka(
                **client_of(bootstrap),
                bootstrap_timeout_ms=limit_ms,
                acks="all",
                enable_idempotence=True,
                delivery_timeout_ms=limit_ms,
                request_timeout_ms=max(1, limit_ms // 2),
                max_block_ms=max(1, limit_ms // 2),
                reconnect_backoff_max_ms=500,
                batch_size=1 << 17,
                allow_auto_create_topics=False,
                metrics_enabled=False,
                kafka_client=connections,
            )
    except KafkaError as failure:
        saw = f"saw {failure}. Is the broker up?"
        raise StackError(f"asked Kafka at {bootstrap} to take records; {saw}") from failure
    return client


class TopicSender:
    """Sends records to topics. After any doubt the client is dropped and a new one takes over: a record that is called
    unknown is never sent later. `connected` gives a client; tests hand in their own. Raises StackError."""

    def __init__(
        self,
        bootstrap: Address,
        places: Places,
        *,
        last: LastTopic | None = None,
        answer_within_s: float = 30.0,
        connected: Callable[[], Client] | None = None,
    ) -> None:
        self._connected = connected or partial(connect, bootstrap, answer_within_s=answer_within_s)
        self._client: Client | None = self._connected()
        self._places = places
        self._last = last
        self._answer_within_s = answer_within_s

    def placed(self, record: Record) -> Record:
        """As Kafka's default partitioner does it; records without a key go round, so that a seed fixes them too."""
        if record.partition is not None:
            return record
        spread = record.seq if record.key is None else _hashed(record.key)
        topics = len(self._places.topics) - int(self._last is not None and record.seq < self._last.at)
        return record._replace(partition=spread % (topics * self._places.each))

    def send(self, records: Sequence[Record]) -> list[Answer]:
        """Takes at most `answer_within_s` and a little for handing over, as long for the answers, and as long to make
        the last topic."""
        last = self._last
        if last is not None and not last.made and any(record.seq >= last.at for record in records):
            try:
                last.make(within_s=self._answer_within_s)
            except WaitError as failure:
                return [_not_sent(record, failure) for record in records]
        answers = self._tried(records)
        if any(answer.state is State.UNKNOWN for answer in answers):
            # What the client still holds it would send some time, so it goes before the answers are put down.
            self._drop(0)
        return answers

    def close(self) -> None:
        """Disconnect."""
        self._drop(GRACE_S)

    def _drop(self, grace_s: float) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close(timeout=grace_s)

    def _tried(self, portion: Sequence[Record]) -> list[Answer]:
        # One limit for the whole portion: who hands over late waits less, and is unknown sooner.
        deadline, last = Deadline(self._answer_within_s), Deadline(self._answer_within_s + GRACE_S)
        try:
            client = self._client = self._client or self._connected()
        except StackError as failure:
            return [_not_sent(record, failure) for record in portion]
        sends = [(record.seq, self._hand_over(client, record, deadline)) for record in portion]
        return [sent if isinstance(sent, Answer) else self._answer(seq, sent, last) for seq, sent in sends]

    def _hand_over(self, client: Client, record: Record, deadline: Deadline) -> Pending | Answer:
        """Give one record to the client; an answer if it did not even leave this process."""
        if deadline.over():
            return Answer(
                record.seq,
                State.FAILED,
                error=f"not sent: the producer's buffer was full for {self._answer_within_s:g} s",
            )
        header = [(HEADER, record.seq.to_bytes(8, "big"))]
        try:
            topic, partition = self._places.place(record.partition or 0)
            return client.send(topic, record.value, key=record.key, headers=header, partition=partition)
        except (KafkaError, ValueError) as refusal:
            return Answer(record.seq, State.FAILED, error=_words(refusal))

    def _answer(self, seq: int, pending: Pending, deadline: Deadline) -> Answer:
        try:
            done = pending.get(timeout=deadline.left_s())
        except REFUSALS as refusal:
            return Answer(seq, State.FAILED, error=_words(refusal))
        except KafkaError as failure:
            return Answer(seq, State.UNKNOWN, error=_words(failure))
        if done.offset < 0:
            return Answer(seq, State.UNKNOWN, error="acknowledged without an offset")
        return Answer(seq, State.ACKNOWLEDGED, self._places.number(done.topic, done.partition), done.offset)


def _not_sent(record: Record, why: HarnessError) -> Answer:
    return Answer(record.seq, State.FAILED, error=f"not sent: {why}")


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@lru_cache(maxsize=100_000)
def _hashed(key: bytes) -> int:
    return int(murmur2(key)) & 0x7FFFFFFF
