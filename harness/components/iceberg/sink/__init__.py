"""The sink `iceberg`: an Iceberg table in a warehouse that the run was given.

rows   reads a snapshot of it whole and exactly
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from harness.components.iceberg.sink.start import START
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About
from harness.resources import Resources, labelled, part
from harness.scenario import Sink
from harness.sinks.any_table import AnyTable
from harness.sinks.base import CommitLog, OpenSink

NAMES = r"[a-z0-9][a-z0-9_-]{0,62}(\.[a-z0-9_-]{1,62}){0,5}"
TEMPORARY = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}((?:\.gz)?\.metadata\.json)")
VERSION = re.compile(r"v([0-9]+)\.")
"""What the file is called that a Hadoop catalog renames to the next version, and what it calls versions."""


class Place(Shape):
    """Which table."""

    iceberg: Annotated[
        str,
        v.matching(NAMES, "the name of a table such as shop.payments, of small letters, digits, '_' and '-'"),
        Field(description="a table of the catalog, its namespaces before dots"),
    ]


class Iceberg(AnyTable):
    """Read by the harness itself, one snapshot at a time, never by the Spark under test.

    It does not count rows: a table shows none before the snapshot that has them, so no writer can be held at one."""

    about = About(
        name="iceberg",
        summary="an Iceberg table in the run's own warehouse",
        example="{iceberg: shop.payments, expected: select id from ledger, key: [id]}",
        options=Place,
    )
    component = "iceberg"
    start = START

    def commit_log(self, sink: Sink, own: Mapping[str, Resources]) -> CommitLog:
        """Return the table's metadata. Raises NotGiven for a folder that the run was not given."""
        there = part(own, labelled(self.component, sink.part))
        return CommitLog(there.at.folder, there.at.folder.joinpath(*sink.target.split(".")) / "metadata", becomes)

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Raises NotGiven for a warehouse that the run was not given."""
        there = part(own, labelled(self.component, sink.part))
        # Scenario files are read without what reads tables.
        from harness.components.iceberg.sink import rows
        from harness.sinks.table_format import OpenTable

        return OpenTable(there.at.folder.joinpath(*sink.target.split(".")), rows)


def becomes(file: Path) -> str | None:
    """Return the next version's name for the metadata that Iceberg writes to a temporary file; None for one that is
    none."""
    found = TEMPORARY.fullmatch(file.name)
    if not found:
        return None
    numbers = [int(version[1]) for name in file.parent.iterdir() if (version := VERSION.match(name.name))]
    return f"v{max(numbers, default=0) + 1}{found[1]}"


KIND = Iceberg()
