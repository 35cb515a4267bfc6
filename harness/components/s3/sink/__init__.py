"""The sink `s3`: Parquet or JSON files whose keys begin alike, read as those in a folder are.

open_prefix   one of them, in a run
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from harness.components.files.sink import KIND as FILES
from harness.components.files.sink import AFormat, AReader, Columns, Reader
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusals
from harness.resources import Resources, labelled, part
from harness.scenario import Sink
from harness.sinks import json_columns as c
from harness.sinks.base import OpenSink


class Place(Shape):
    """Which objects, and how they are read."""

    s3: Annotated[v.Label, Field(description="the name of a folder below {s3.path}")]
    format: AFormat
    reader: AReader
    columns: Columns


class S3Objects:
    """Read by the harness itself, never by the Spark under test."""

    about = About(
        name="s3",
        summary="Parquet files or JSON lines in an object store, as listed or by the manifest of Spark's file sink",
        example="{s3: payments, reader: manifest, effect: select id from ledger, key: [id]}",
        options=Place,
    )
    component = "s3"
    unread = ""

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """As of files in a folder."""
        return FILES.refusals(options)

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Raises NotGiven for a part that the run was not given."""
        there = part(own, labelled(self.component, sink.part))
        # Scenario files are read without what reads files.
        from harness.components.files.sink.json_rows import JsonLines
        from harness.components.files.sink.parquet_rows import Parquet
        from harness.components.s3.sink.open_prefix import OpenPrefix

        said = sink.options.get("columns")
        rows = JsonLines(c.parsed(str(said))) if said else Parquet()
        return OpenPrefix(there.at, sink.target, rows, by_manifest=sink.options.get("reader") == Reader.MANIFEST)


KIND = S3Objects()
