"""Files of records dropped into a folder on a server, as Spark's file source reads them there.

A file whose writing got no answer may be there: it is searched for as soon as the server answers again. Until then no
reader knows, and nothing is sent again. One that was not answered in time may still come: it is unknown until it is
there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from harness.checkpoint import Offsets
from harness.components.files.forms import FORMS, Format
from harness.components.files.source import PER_FILE, FormatOf, OpenFolder, PerFile
from harness.errors import StackError
from harness.fields.shape import Shape
from harness.kinds import About
from harness.remote import Gone, RemoteFolder
from harness.resources import Resources, labelled, part
from harness.scenario import Input
from harness.sources.base import OpenSource, Sender
from harness.sources.lines import Line, read_back


class RemoteCut(Shape):
    """How the records are cut into files."""

    records_per_file: PerFile = PER_FILE
    format: FormatOf


@dataclass
class RemoteOpenFolder(OpenFolder):
    """The folder of one run, on its server."""

    remote: RemoteFolder | None = None
    doubtful: set[int] = field(default_factory=set)
    """The files of which it is not known whether they are there."""

    def sender(self) -> Sender:
        """Return who writes the files."""
        # Scenario files are read without what writes a ledger.
        from harness.components.files.remote_sender import RemoteSender

        return RemoteSender(self)

    def ends(self) -> Offsets:
        """Return how many records each file has that is there, or was taken by a batch. Raises StackError."""
        absent = self._absent()
        return {number: end for number, end in super().ends().items() if number not in absent}

    def there(self, number: int) -> bytes | None:
        """Return a file as it lies there, and as it was dropped where its server has lost what it held; None if it does
        not. Raises StackError."""
        assert self.remote is not None
        try:
            return self.remote.read(self.dropped.file(number).name)
        except Gone:
            # The server acknowledged its records: what became of them is what the run is about.
            return self.dropped.form.written(self.dropped.values[number])

    def _absent(self) -> set[int]:
        """Return the doubtful ones that are not there, so far."""
        return {n for n in self.doubtful if n not in self.dropped.planned and self.there(n) is None}

    def _batches(self) -> Iterator[Any]:
        absent = self._absent()
        for number, values in sorted(self.dropped.values.items()):
            if number in absent:
                continue
            whole, found = self.dropped.form.written(values), self.there(number)
            # What the pipeline has taken away is as it was dropped.
            if found not in (None, whole):
                file = self.dropped.file(number)
                raise StackError(f"asked for {file} as it was dropped; it was changed. Who else writes there?")
            yield read_back(number, [Line(value, 0) for value in values])


@dataclass(frozen=True)
class RemoteFiles:
    """A kind of source: files in a folder that a component keeps."""

    component: str
    summary: str

    @property
    def about(self) -> About:
        """Who it is."""
        example = f"{{source: {self.component}, records_per_file: 20}}"
        return About(name=self.component, summary=self.summary, example=example, options=RemoteCut)

    def requested_parts(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """Return a folder."""
        return {labelled(self.component, "input"): {}}

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """Return the folder."""
        from harness.components.files.dropped import Dropped

        remote: RemoteFolder = part(own, labelled(self.component, "input")).at
        options = given.source_options
        form = FORMS[Format(str(options.get("format", Format.LINES)))]
        # As Spark's own log names it, without the server.
        folder = Path(unquote(urlsplit(remote.url).path))
        return RemoteOpenFolder(Dropped(folder, form), int(options.get("records_per_file", PER_FILE)), remote=remote)
