"""The sink `delta`: a Delta table in a folder that the run was given.

rows   reads a version of it whole and exactly
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from harness.components.delta.sink.start import START
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About
from harness.resources import Resources, labelled, part
from harness.scenario import Sink
from harness.sinks.any_table import AnyTable
from harness.sinks.base import CommitLog, OpenSink

TEMPORARY = re.compile(r"\.([0-9]{20}\.json)\.[^.]+\.tmp")
"""What the file is called that Delta renames to a version of the log."""


class Place(Shape):
    """Which table."""

    delta: Annotated[v.Label, Field(description="the name of a table's folder below {delta.path}")]


class Delta(AnyTable):
    """Read by the harness itself, one version at a time, never by the Spark under test.

    It does not count rows: a table shows none before the version that has them, so no writer can be held at one."""

    about = About(
        name="delta",
        summary="a Delta table in the run's own folder of tables",
        example="{delta: payments, expected: select id from ledger, key: [id]}",
        options=Place,
    )
    component = "delta"
    start = START

    def commit_log(self, sink: Sink, own: Mapping[str, Resources]) -> CommitLog:
        """Return the table's log. Raises NotGiven for a folder that the run was not given."""
        there = part(own, labelled(self.component, sink.part))
        return CommitLog(there.at.folder, there.at.folder / sink.target / "_delta_log", becomes)

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Raises NotGiven for a folder that the run was not given."""
        there = part(own, labelled(self.component, sink.part))
        # Scenario files are read without what reads tables.
        from harness.components.delta.sink import rows
        from harness.sinks.table_format import OpenTable

        return OpenTable(there.at.folder / sink.target, rows)


def becomes(file: Path) -> str | None:
    """Return what Delta calls the version that it writes to a temporary file; None for one that is none."""
    found = TEMPORARY.fullmatch(file.name)
    return found[1] if found else None


KIND = Delta()
