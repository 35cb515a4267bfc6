"""Sends a workload to Kafka: meant in the ledger first, then sent, then every answer into the ledger.

An answer is *acknowledged* with its place, *failed* only where the record itself can never be taken or never left
this process, and *unknown* for all else: a lost connection or a time-out may hide a record that was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import islice
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

from harness.errors import StackError
from harness.run_folder.ledger import Answer, Attempts, State
from harness.wait import Deadline
from harness.workloads.base import Record, Workload

PORTION = 2000
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
        """An object with `partition` and `offset`; raises the error, or KafkaTimeoutError after `timeout` s."""


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


def connect(bootstrap: str, *, answer_within_s: float) -> Client:
    """An idempotent client that gives every answer within `answer_within_s`. Raises StackError if nobody answers."""
    limit_ms = int(answer_within_s * 1000)
    try:
        client: Client = _Kafka(
            bootstrap_servers=bootstrap,
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
        )
    except KafkaError as failure:
        saw = f"saw {failure}. Is the broker up?"
        raise StackError(f"asked Kafka at {bootstrap} to take records; {saw}") from failure
    return client


class Producer:
    """Sends the records of a workload in order. After any doubt the client is dropped and a new one takes over: a
    record that is called unknown is never sent later. `connected` gives a client; tests hand in their own.

    Counters: `sent` records taken, of which `acknowledged`, `failed` and `unknown`; `total` there are."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        workload: Workload,
        attempts: Attempts,
        *,
        partitions: int,
        answer_within_s: float = 30.0,
        connected: Callable[[], Client] | None = None,
    ) -> None:
        self._connected = connected or partial(connect, bootstrap, answer_within_s=answer_within_s)
        self._client: Client | None = self._connected()
        self._closed = False
        self._topic = topic
        self._records = workload.records()
        self._attempts = attempts
        self._partitions = partitions
        self._answer_within_s = answer_within_s
        self._counts = dict.fromkeys(State, 0)
        self._reached: dict[int, int] = {}
        self.total = workload.count

    @property
    def sent(self) -> int:
        """Records taken, sent and answered one way or another."""
        return sum(self._counts.values())

    @property
    def acknowledged(self) -> int:
        return self._counts[State.ACKNOWLEDGED]

    @property
    def reached(self) -> Mapping[int, int]:
        """Next offsets by partition, as far as records were acknowledged. Never changes once it was given out."""
        return self._reached

    @property
    def failed(self) -> int:
        return self._counts[State.FAILED]

    @property
    def unknown(self) -> int:
        return self._counts[State.UNKNOWN]

    @property
    def done(self) -> bool:
        """True once every record was sent and answered."""
        return self.sent >= self.total

    def send(self, n: int) -> int:
        """Take the next `n` records, or those that are left; returns how many, once the ledger holds their answers.

        Takes at most 1.5 times `answer_within_s` and a little for each portion of 2000. Raises HarnessError if the
        ledger cannot be written: then nothing of that portion was sent, or its answers stay unknown."""
        taken = 0
        while not self._closed and (portion := list(islice(self._records, min(PORTION, n - taken)))):
            self._portion([record._replace(partition=self._place(record)) for record in portion])
            taken += len(portion)
        return taken

    def close(self) -> None:
        """Disconnect, and take no more records. Read the topic back only after this. Safe to call twice."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            client.close(timeout=GRACE_S)

    def _portion(self, portion: Sequence[Record]) -> None:
        self._attempts.meant(portion)
        answers = self._tried(portion)
        if any(answer.state is State.UNKNOWN for answer in answers):
            # What the client still holds it would send some time, so it goes before the answers are put down.
            client, self._client = self._client, None
            if client is not None:
                client.close(timeout=0)
        self._attempts.answers(answers)
        for answer in answers:
            self._counts[answer.state] += 1
        self._reached = _behind(self._reached, answers)

    def _tried(self, portion: Sequence[Record]) -> list[Answer]:
        # One limit for the whole portion: who hands over late waits less, and is unknown sooner.
        deadline, last = Deadline(self._answer_within_s), Deadline(self._answer_within_s + GRACE_S)
        try:
            client = self._client = self._client or self._connected()
        except StackError as failure:
            return [Answer(record.seq, State.FAILED, error=f"not sent: {failure}") for record in portion]
        sends = [(record.seq, self._hand_over(client, record, deadline)) for record in portion]
        return [sent if isinstance(sent, Answer) else _answer(seq, sent, last) for seq, sent in sends]

    def _hand_over(self, client: Client, record: Record, deadline: Deadline) -> Pending | Answer:
        """Give one record to the client; an answer if it did not even leave this process."""
        if deadline.over():
            return Answer(record.seq, State.FAILED, error=f"not sent: no room for {self._answer_within_s:g} s")
        header = [(HEADER, record.seq.to_bytes(8, "big"))]
        try:
            return client.send(self._topic, record.value, key=record.key, headers=header, partition=record.partition)
        except (KafkaError, ValueError) as refusal:
            return Answer(record.seq, State.FAILED, error=_words(refusal))

    def _place(self, record: Record) -> int:
        """As Kafka's default partitioner does it; records without a key go round, so that a seed fixes them too."""
        if record.partition is not None:
            return record.partition
        if record.key is None:
            return record.seq % self._partitions
        return _hashed(record.key) % self._partitions


def _behind(reached: Mapping[int, int], answers: Sequence[Answer]) -> dict[int, int]:
    out = dict(reached)
    for answer in answers:
        if answer.partition is not None and answer.offset is not None:
            out[answer.partition] = max(answer.offset + 1, out.get(answer.partition, 0))
    return dict(sorted(out.items()))


def _answer(seq: int, pending: Pending, deadline: Deadline) -> Answer:
    try:
        done = pending.get(timeout=deadline.left_s())
    except REFUSALS as refusal:
        return Answer(seq, State.FAILED, error=_words(refusal))
    except KafkaError as failure:
        return Answer(seq, State.UNKNOWN, error=_words(failure))
    if done.offset < 0:
        return Answer(seq, State.UNKNOWN, error="acknowledged without an offset")
    return Answer(seq, State.ACKNOWLEDGED, done.partition, done.offset)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@lru_cache(maxsize=100_000)
def _hashed(key: bytes) -> int:
    return int(murmur2(key)) & 0x7FFFFFFF
