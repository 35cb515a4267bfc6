"""The sink `files`: Parquet or JSON files in a folder that the run was given.

open_folder   one of them, in a run
remote_folder one that lies on a server
listing       the files that Spark sees when it lists the folder, and what their folders say of their rows
manifest      the files that Spark's file sink has committed, by its own log
parquet_rows  reads Parquet files whole and exactly
json_rows     reads files of JSON lines whole and exactly
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, create_model

from harness.checkers.schema_check import Column
from harness.components.files.sink.listing import Reader
from harness.components.files.sink.start import START
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusal, Refusals
from harness.resources import Resources, labelled, part
from harness.scenario import Sink
from harness.sinks import json_columns as c
from harness.sinks.base import CommitLog, OpenSink

if TYPE_CHECKING:
    from harness.components.files.sink.open_folder import Rows


TEMPORARY = re.compile(r"\.([0-9]+(?:\.compact)?)\.[^.]+\.tmp")
"""What the file is called that Spark renames to `N` or `N.compact`."""


class Format(StrEnum):
    """How a file stores rows."""

    PARQUET = "parquet"
    JSON = "json"


class How(Shape):
    """How a folder is read."""

    format: Annotated[Format, v.choice(Format), Field(Format.PARQUET, description="how a file stores rows")]
    reader: Annotated[
        Reader,
        v.choice(Reader),
        Field(
            Reader.LISTING,
            description="listing: the files that Spark finds without a manifest in the folder or its partitions; "
            "recursive: those of plain subfolders too, and no folder is a column; manifest: those that Spark's file "
            "sink committed",
        ),
    ]
    columns: Annotated[
        c.Columns, Field(None, description="of JSON: each as NAME TYPE, a field of a line or of the folder's name")
    ]


def place(component: str) -> type[How]:
    """Return the model of a folder that this component keeps."""
    named = Annotated[v.Label, Field(description=f"the name of a folder below {{{component}.path}}")]
    fields: Any = {component: (named, ...)}
    return create_model("Place", __base__=How, __doc__="Which folder, and how it is read.", **fields)


def about(component: str, summary: str) -> About:
    """Return the description of a sink of files in this component."""
    example = f"{{{component}: payments, reader: manifest, expected: select id from ledger, key: [id]}}"
    return About(name=component, summary=summary, example=example, options=place(component))


class Folder:
    """What every such sink has in common."""

    unread = ""

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """Yield what is wrong with `columns`: JSON has no column types, and Parquet has."""
        columns, json = options.get("columns"), options.get("format") == Format.JSON
        if json and not columns:
            yield Refusal("columns", "is missing: JSON does not say of which type a column is, so name each with it")
        elif columns and not json:
            yield Refusal("columns", "means nothing for Parquet, which says of which type a column is")
        elif columns and (others := [column.name for column in c.parsed(columns) if column.of != "field"]):
            yield Refusal("columns", f"{', '.join(others)}: a line of a file has fields alone: write NAME TYPE")

    def declared_columns(self, options: Mapping[str, Any]) -> Sequence[Column]:
        """Return those of JSON: Parquet has its own."""
        return c.compared(str(options.get("columns") or ""))


class Files(Folder):
    """Read by the harness itself, never by the Spark under test.

    It does not count rows: a file shows none before it is whole, so no writer can be held at one."""

    component = "files"
    about = about(
        component, "a folder of Parquet files or of JSON lines, as listed or by the manifest of Spark's file sink"
    )
    start = START

    def commit_log(self, sink: Sink, own: Mapping[str, Resources]) -> CommitLog:
        """Return the manifest of Spark's file sink. Raises NotGiven for a folder that the run was not given."""
        root = part(own, labelled(self.component, sink.part)).at.folder
        return CommitLog(root, root / sink.target / "_spark_metadata", becomes)

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Raises NotGiven for a folder that the run was not given."""
        there = part(own, labelled(self.component, sink.part))
        # Scenario files are read without what reads files.
        from harness.components.files.sink.open_folder import OpenFolder

        return OpenFolder(there.at.folder / sink.target, rows_of(sink), reader_of(sink))


class RemoteFiles(Folder):
    """The same in a folder that a component keeps on its server."""

    def __init__(self, component: str, summary: str) -> None:
        self.about, self.component = about(component, summary), component

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Raises NotGiven for a folder that the run was not given."""
        there = part(own, labelled(self.component, sink.part))
        from harness.components.files.sink.remote_folder import RemoteOpenFolder

        return RemoteOpenFolder(there.at, sink.target, rows_of(sink), reader_of(sink))


def rows_of(sink: Sink) -> Rows:
    """Return how its files are read."""
    from harness.components.files.sink.json_rows import JsonLines
    from harness.components.files.sink.parquet_rows import Parquet

    columns = sink.options.get("columns")
    return JsonLines(c.parsed(str(columns))) if columns else Parquet()


def reader_of(sink: Sink) -> Reader:
    """Return which of its files are read."""
    return Reader(str(sink.options.get("reader") or Reader.LISTING))


def becomes(file: Path) -> str | None:
    """Return what Spark calls the manifest that it writes to a temporary file; None for one that is none."""
    found = TEMPORARY.fullmatch(file.name)
    return found[1] if found else None


KIND = Files()
