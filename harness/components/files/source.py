"""The source `files`: a folder that files of records are dropped into, as Spark's file source reads it.

Each file is one partition, and a line of it an offset: so it does not matter in which order Spark takes them.
It appears under its name by a rename, whole, and is not touched again, unless the scenario asks for that. A file that
was renamed is no partition: what Spark reads out of it, it has read before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from harness.checkpoint import Offsets
from harness.components.files import spark_log
from harness.components.files.forms import FORMS, Afterwards, Format
from harness.errors import StackError
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusal, Refusals
from harness.resources import Resources, part
from harness.scenario import Input
from harness.sources.base import OpenSource, Sender
from harness.sources.lines import Line, read_back

if TYPE_CHECKING:
    # Scenario files are read without what writes a ledger.
    from harness.components.files.dropped import Dropped

LABEL = "files.input"
PER_FILE = 20


PerFile = Annotated[int, v.whole(1, 100_000)]
FormatOf = Annotated[
    Format,
    v.choice(Format),
    Field(Format.LINES, description="a record a line, or each in the column `value` (binary) of a Parquet file"),
]


class Cut(Shape):
    """How the records are cut into files."""

    records_per_file: PerFile = PER_FILE
    in_place: Annotated[
        v.Flag,
        Field(False, description="true: a file is seen when half of it is written (a writer that does not rename)"),
    ]
    torn: Annotated[
        v.Flag,
        Field(False, description="true, with `in_place`: what is seen ends in the middle of a record"),
    ]
    format: FormatOf
    afterwards: Annotated[
        Afterwards,
        v.choice(Afterwards),
        Field(Afterwards.NOTHING, description="what its writer does to a file that a batch has taken"),
    ]


@dataclass
class OpenFolder:
    """The folder of one run."""

    dropped: Dropped
    per_file: int = PER_FILE
    in_place: bool = False
    torn: bool = False
    afterwards: Afterwards = Afterwards.NOTHING
    begins_with_input = True

    def offsets(self, line: str, log: Path) -> Offsets | None:
        """A line of Spark's file source says how far its own log counts; a file is in a batch whole. None where that
        log names files of another folder, or says nothing of what is reached."""
        from harness.components.files.dropped import NAME

        reached = spark_log.reached(line)
        if reached is None or reached < 0:
            return None if reached is None else {}
        files = [entry.file for entry in spark_log.entries(log) if entry.batch <= reached]
        ours = [file for file in files if file.parent == self.dropped.folder]
        numbers = sorted(int(found[1]) for file in ours if (found := NAME.fullmatch(file.name)))
        for number in numbers:
            self.dropped.is_planned(number, log.parents[1])
        values = self.dropped.values
        return {number: len(values[number]) for number in numbers if number in values} if ours else None

    def in_file(self, uri: str) -> tuple[int, int] | None:
        """Return the number of a file that was dropped, and how many lines it has."""
        from harness.components.files.dropped import NAME

        file = spark_log.path_of(uri)
        found = NAME.fullmatch(file.name) if file.parent == self.dropped.folder else None
        values = self.dropped.values.get(int(found[1])) if found else None
        return (int(found[1]), len(values)) if found and values is not None else None

    def sender(self) -> Sender:
        """Return who writes the files."""
        from harness.components.files.dropped import FileSender

        return FileSender(
            self.dropped, self.per_file, in_place=self.in_place, torn=self.torn, afterwards=self.afterwards
        )

    def ends(self) -> Offsets:
        """Return how many records each file has that was dropped."""
        return {number: len(values) for number, values in sorted(self.dropped.values.items())}

    def read_back(self, path: Path, *, within_s: float) -> Offsets:
        """Return the files as they lie there; what the pipeline has taken away (`cleanSource`) as it was dropped.
        Raises StackError where a file is not what was dropped."""
        from harness.run_folder.ledger import write_source

        write_source(path, self._batches())
        return self.ends()

    def _batches(self) -> Iterator[Any]:
        for number, values in sorted(self.dropped.values.items()):
            file, whole = self.dropped.file(number), self.dropped.form.written(values)
            try:
                dropped_ms, there = int(file.stat().st_mtime * 1000), file.read_bytes()
            except FileNotFoundError:
                dropped_ms, there = 0, whole
            if there != whole:
                raise StackError(f"asked for {file} as it was dropped; it was changed. Who else writes there?")
            yield read_back(number, [Line(value, dropped_ms) for value in values])


class Files:
    """Read by Spark's file source."""

    about = About(
        name="files",
        summary="files of records dropped into a folder of the run's own, {files.input.path}",
        example="{source: files, records_per_file: 20}",
        options=Cut,
    )

    receiver = False

    def requested_parts(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """Return a folder."""
        return {LABEL: {}}

    def refusals(self, options: Mapping[str, Any], records: int | None) -> Refusals:
        """Half of a Parquet file is none, and a file that is written in place has no second writing."""
        if not options.get("in_place"):
            if options.get("torn"):
                yield Refusal("torn", "is for a file that is seen before it is whole: say `in_place: true` as well")
            return
        if options.get("format", Format.LINES) != Format.LINES:
            yield Refusal("in_place", "is for lines: half of a Parquet file has no footer, and Spark's query fails")
        if options.get("afterwards", Afterwards.NOTHING) != Afterwards.NOTHING:
            yield Refusal("in_place", "changes a file once it was taken already: take out `afterwards`")

    def unread_by_time(self, options: Mapping[str, Any]) -> Refusals:
        """A text file is taken whole, and no reader waits until it is."""
        if options.get("format", Format.LINES) != Format.LINES:
            yield Refusal("format", "must be lines: DStreams read text files")
        for key in ("in_place", "torn", "afterwards"):
            if options.get(key, Afterwards.NOTHING) not in (False, Afterwards.NOTHING):
                yield Refusal(key, "is for files that Structured Streaming takes")

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """Return the folder."""
        from harness.components.files.dropped import Dropped

        options, folder = given.source_options, part(own, LABEL).at.folder
        per_file = int(options.get("records_per_file", PER_FILE))
        in_place, torn = bool(options.get("in_place", False)), bool(options.get("torn", False))
        form = FORMS[Format(str(options.get("format", Format.LINES)))]
        afterwards = Afterwards(str(options.get("afterwards", Afterwards.NOTHING)))
        return OpenFolder(Dropped(folder, form), per_file, in_place, torn, afterwards)


KIND = Files()
