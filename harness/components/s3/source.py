"""The source `s3`: objects of records put under a prefix, as Spark's file source reads them.

Each object is a partition of its own, and a record in it an offset, as with files. It is there whole, and nobody may
touch it again: not its writer, and not the pipeline either (`cleanSource`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.components.files.forms import FORMS, Format
from harness.components.files.source import PER_FILE, AFormat, OpenFolder, PerFile
from harness.errors import StackError
from harness.fields.shape import Shape
from harness.kinds import About, Refusals
from harness.resources import Resources, part
from harness.scenario import Input
from harness.sources.base import OpenSource, Sender
from harness.sources.lines import Line, read_back

if TYPE_CHECKING:
    # Scenario files are read without what asks a server.
    from harness.components.s3.run_prefix import Room

LABEL = "s3.input"


class Cut(Shape):
    """How the records are cut into objects."""

    records_per_file: PerFile = PER_FILE
    format: AFormat


@dataclass(kw_only=True)
class OpenObjects(OpenFolder):
    """Those of one run. `dropped.folder` is the path that Spark's log names them by."""

    room: Room

    def sender(self) -> Sender:
        """Who puts them."""
        from harness.components.s3.sender import ObjectSender

        return ObjectSender(self.dropped, self.per_file, self.room)

    def _batches(self) -> Iterator[Any]:
        there = {entry.key: entry for entry in self.room.listed()}
        for number, values in sorted(self.dropped.values.items()):
            name, whole = self.dropped.file(number).name, self.dropped.form.written(values)
            found = self.room.read(name)
            if found != whole or name not in there:
                saw = "it is gone" if found is None else "it was changed"
                raise StackError(f"asked for the object {name} as it was put; {saw}. Who else writes there?")
            put_ms = int(datetime.fromisoformat(there[name].changed).timestamp() * 1000)
            yield read_back(number, [Line(value, put_ms) for value in values])


class S3Source:
    """Read by Spark's file source."""

    about = About(
        name="s3",
        summary="objects of records put into an object store, below {s3.input.path}",
        example="{source: s3, records_per_file: 20}",
        options=Cut,
    )

    def asks(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """A prefix."""
        return {LABEL: {}}

    def refusals(self, options: Mapping[str, Any], records: int | None) -> Refusals:
        """Nothing more can be wrong."""
        return iter(())

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """The objects."""
        from harness.components.files.dropped import Dropped

        asked, room = given.source_options, part(own, LABEL).at
        form = FORMS[Format(str(asked.get("format", Format.LINES)))]
        dropped = Dropped(Path("/", room.prefix), form)
        return OpenObjects(dropped, int(asked.get("records_per_file", PER_FILE)), room=room)


KIND = S3Source()
