"""The sink `opensearch`: an index of the run's own.

open_index   one of them, in a run: reads it whole, fingerprints it, says what its server is at
mapping      what its mapping keeps, and of which types its fields can be read exactly
documents    makes a row of each document, or refuses it by its id
start        how a pipeline of one's own into it begins
refresh      how soon a search finds what was written, and a wait until it does
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from harness.checkers.schema_check import Column
from harness.components.opensearch.sink.start import START
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusal, Refusals
from harness.resources import Resources, labelled, part
from harness.scenario import Sink
from harness.sinks import json_columns as c
from harness.sinks.base import OpenSink

META = {"_id": c.BYTES, "_version": tuple(c.WHOLE)}
"""What a document has beside its fields, and the types that hold it."""


class Place(Shape):
    """Which index."""

    opensearch: Annotated[v.Label, Field(description="the name of an index, without the prefix {opensearch.prefix}")]
    columns: Annotated[
        c.Columns,
        Field(
            None,
            description="each as NAME TYPE: a field of a document, `_id` or `_version`; without it, by the mapping",
        ),
    ]


class OpenSearch:
    """Read by the harness itself, after a refresh.

    It does not count rows: the server reports no document as it is written, and holds no writer."""

    about = About(
        name="opensearch",
        summary="an index in OpenSearch whose documents are rows, as their clients sent them",
        example="{opensearch: payments, expected: select id from ledger, key: [id]}",
        options=Place,
    )
    component = "opensearch"
    start = START
    unread = ""

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """A column is a field, or of what a document has beside them."""
        found = c.parsed(options["columns"]) if options.get("columns") else ()
        if others := [column.name for column in found if column.of != "field"]:
            words = "a document has fields alone: write NAME TYPE, or NAME TYPE of field _id"
            yield Refusal("columns", f"{', '.join(others)}: {words}")
        for column in found:
            if column.of == "field" and column.type not in META.get(column.source, (column.type,)):
                types = ", ".join(META[column.source])
                yield Refusal("columns", f"{column.name}: {column.source} is read as {types}, not as {column.type}")

    def declared_columns(self, options: Mapping[str, Any]) -> Sequence[Column]:
        """Without these, by the mapping."""
        return c.compared(str(options.get("columns") or ""))

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Raises NotGiven for a part that the run was not given."""
        there = part(own, labelled(self.component, sink.part))
        # Scenario files are read without a client of any server.
        from harness.components.opensearch.sink.open_index import OpenIndex

        columns = sink.options.get("columns")
        return OpenIndex(there.at, sink.target, c.parsed(str(columns)) if columns else (), sink.key)


KIND = OpenSearch()
