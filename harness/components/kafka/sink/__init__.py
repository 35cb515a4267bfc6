"""The sink `kafka`: a topic of the run's own, which the pipeline writes into.

rows         makes a row of each record
repeats      drops records that repeat an identity, as a reader of the topic may do
open_topic   one of them, in a run: reads it up to its ends, fingerprints it, says who has a transaction open
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from harness.checkers.schema_check import Column
from harness.components.kafka.sink.start import START
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusal, Refusals
from harness.resources import Parts, Resources, labelled, part
from harness.scenario import Sink
from harness.sinks import json_columns as c
from harness.sinks.base import OpenSink

PARTITIONS = 3


class Read(Shape):
    """How a topic is read."""

    columns: Annotated[
        c.Columns,
        Field(c.DEFAULT, description="each as NAME TYPE: a field of the JSON object in the value, or of more"),
    ]
    drop_duplicates: Annotated[
        c.Names, Field(None, description="columns that identify a record: one that repeats them is dropped")
    ]
    topic_partitions: Annotated[int, v.whole(1, 1000), Field(PARTITIONS, description="how many the topic has")]


class OfTopic:
    """Read by the harness itself, as a consumer of committed records."""

    component: str
    unread = ""

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """A record is identified by columns that are read."""
        known = [column.name for column in c.parsed(options.get("columns", c.DEFAULT))]
        unknown = [name for name in c.names(options.get("drop_duplicates") or "") if name not in known]
        if unknown:
            yield Refusal("drop_duplicates", f"names no column {', '.join(unknown)}: there are {', '.join(known)}")

    def requested_parts(self, sink: Sink) -> Parts:
        """Return a topic with so many partitions."""
        return {labelled(self.component, sink.target): {"partitions": sink.options.get("topic_partitions", PARTITIONS)}}

    def folds(self, options: Mapping[str, Any]) -> bool:
        """Return whether records are dropped."""
        return bool(options.get("drop_duplicates"))

    def declared_columns(self, options: Mapping[str, Any]) -> Sequence[Column]:
        """A topic has no others."""
        return c.compared(str(options.get("columns", c.DEFAULT)))

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Raises NotGiven for a topic that the run was not given."""
        there = part(own, labelled(self.component, sink.target))
        # Scenario files are read without a client of any server.
        from harness.components.kafka.sink.open_topic import OpenTopic

        columns = c.parsed(str(sink.options.get("columns", c.DEFAULT)))
        identity = c.names(str(sink.options.get("drop_duplicates") or ""))
        return OpenTopic(own=there.at, wanted=columns, identity=identity, server=there.label)


class Place(Read):
    """Which topic."""

    kafka: Annotated[v.Part, Field(description="a topic of the run's own: {kafka.NAME.topic}")]


class Kafka(OfTopic):
    """In Kafka."""

    about = About(
        name="kafka",
        summary="a topic of the run's own in Kafka",
        example='{kafka: payments, columns: "id bigint", expected: select id from ledger, key: [id]}',
        options=Place,
    )
    component = "kafka"
    start = START


KIND = Kafka()
