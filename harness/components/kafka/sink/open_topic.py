"""The topic of a sink, where it can be reached: read whole and exactly, with a fingerprint while it may change.

A reading goes up to the ends as they are when it begins: what a reader of committed records can have by then. Before
an open transaction it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from zlib import crc32

from kafka import TopicPartition
from kafka.errors import KafkaError

from harness.checkers.cells import Row
from harness.components.kafka.readback import Offsets, connected, from_the_beginning, records
from harness.components.kafka.run_topic import Topic
from harness.components.kafka.sink.repeats import Repeats
from harness.components.kafka.sink.rows import columns_of, row_of
from harness.errors import StackError
from harness.sinks.base import Reading, Writer, statements
from harness.sinks.json_columns import Wanted
from harness.sinks.table import SinkColumn, SinkTable
from harness.wait import Deadline

READ_S = 120.0
READ_PER_S = 1000.0
"""How many records are read and compared in a second at least: a large topic has as much longer."""


@dataclass(frozen=True, kw_only=True)
class OpenTopic:
    """The topic of one sink of a run. `identity` are the columns of which a record may be dropped that repeats them,
    `server` is the label of the topic's part."""

    own: Topic
    wanted: tuple[Wanted, ...]
    identity: tuple[str, ...]
    server: str

    @property
    def keeps_rows(self) -> bool:
        """A topic is only appended to."""
        return True

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return the columns that the scenario names, since a topic has none."""
        return columns_of(self.wanted)

    @contextmanager
    def reading(self, *, wait_ms: int = 0) -> Iterator[Reading]:
        """Its columns and rows. Nothing keeps a reader of committed records out. Raises UsageError for a record that
        cannot be read exactly. Raises StackError if the broker does not answer, WaitError if the ends are not reached
        in time."""
        topic = self.own.topic
        try:
            ends: Offsets = {TopicPartition(topic, number): end for number, end in self._ends(committed=True).items()}
            deadline = Deadline(READ_S + sum(ends.values()) / READ_PER_S)
            consumer = connected(self.own.bootstrap, deadline)
            try:
                consumer.assign(list(ends))
                from_the_beginning(consumer, ends, deadline)
                with closing(Repeats(self.wanted, self.identity)) as repeats:
                    parts = self._parts(records(consumer, ends, deadline), repeats)
                    yield Reading(self.columns(), parts, lambda: False, dropped=lambda: repeats.dropped)
            finally:
                consumer.close(autocommit=False)
        except KafkaError as failure:
            raise self._silent(f"read the topic {topic}", failure) from failure

    def _parts(self, found: Iterator[list[object]], repeats: Repeats) -> Iterator[list[Row]]:
        for part in found:
            rows = ((record, row_of(record, self.wanted, topic=self.own.topic)) for record in part)
            yield [row for record, row in rows if repeats.first(row, partition=record.partition)]  # type: ignore[attr-defined]

    def mark(self) -> str:
        """Return where each partition ends: with and without what is not committed. Raises StackError."""
        try:
            ends, stable = self._ends(), self._ends(committed=True)
        except KafkaError as failure:
            raise self._silent(f"say where the topic {self.own.topic} ends", failure) from failure
        return " ".join(f"{number}:{stable[number]}/{end}" for number, end in sorted(ends.items()))

    def _ends(self, *, committed: bool = False) -> dict[int, int]:
        """Of every partition: one without a leader must not look as if it held nothing."""
        own = self.own
        ends = own.topics.end_offsets(own.topic, committed=committed)
        if len(ends) < own.partitions:
            request = f"asked Kafka where the {own.partitions} partitions of {own.topic} end"
            raise StackError(f"{request}; it answered for {len(ends)}. See logs/kafka.log")
        return ends

    def busy(self) -> str:
        """Return a transaction that is open in it."""
        return next(iter(statements(self._writers())), "")

    def tried(self, table: SinkTable, *, after: int | None) -> SinkTable:
        """A record that repeats an identity never shows: that needs no trial."""
        if table.unreadable or not self.identity:
            return table
        words = f"a record that repeats the {', '.join(self.identity)} of one before it is dropped"
        return replace(table, folds=True, folding=words)

    def writing(self, *, wait_ms: int) -> tuple[list[Writer], list[Writer]]:
        """Return who has written into it and not committed: the topic is all that there is in this part of the run."""
        found = self._writers()
        return found, found

    def _writers(self) -> list[Writer]:
        """Return who has written into it in a transaction that is open. Who writes without one is not seen. Raises
        StackError."""
        topic = self.own.topic
        try:
            found = self.own.topics.open_transactions(topic, partitions=self.own.partitions)
        except KafkaError as failure:
            raise self._silent(f"name the transactions open in {topic}", failure) from failure
        return [
            Writer(
                backend=None,
                table=crc32(f"{topic} {partition}".encode()),
                statement=f"transaction of producer {producer} in partition {partition} from offset {offset}",
            )
            for partition, producer, offset in found
        ]

    def _silent(self, request: str, failure: KafkaError) -> StackError:
        saw = f"saw {type(failure).__name__}: {failure}. See logs/kafka.log"
        return StackError(f"asked Kafka at {self.own.bootstrap} to {request}; {saw}")
