"""Files of records dropped into a folder on a server, as Spark's file source reads them there.

A file whose writing got no answer may be there: it is looked for as soon as the server answers again. Until then no
reader knows, and nothing is sent again. One that was not answered in time may still come: it is unknown until it is
there."""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from harness.checkpoint import Offsets
from harness.components.files.forms import FORMS, Format
from harness.components.files.source import PER_FILE, FormatOf, OpenFolder, PerFile
from harness.errors import StackError, WaitError
from harness.fields.shape import Shape
from harness.kinds import About
from harness.remote import Gone, RemoteFolder
from harness.resources import Resources, labelled, part
from harness.scenario import Input
from harness.sources.base import OpenSource, Sender
from harness.sources.lines import Line, read_back
from harness.wait import Waiting, until
from harness.workloads.base import Record

BACK_S = 60.0
"""How long a server that gave no answer is asked whether the file is there."""


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
        return _Sender(self)

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


class _Sender:
    """Drops files of at most so many records; one that a call has begun takes no records of the next."""

    def __init__(self, into: RemoteOpenFolder) -> None:
        self._into = into
        self._number, self._placed = 0, 0

    def placed(self, record: Record) -> Record:
        """With the number of its file."""
        if self._placed == self._into.per_file:
            self._next()
        self._placed += 1
        return record._replace(partition=self._number)

    def send(self, records: Sequence[Record]) -> list[Any]:
        """A record that cannot be in a file of this form is refused."""
        out: list[Any] = []
        for number, group in groupby(records, key=attrgetter("partition")):
            out += self._dropped(int(number or 0), list(group))
        self._next()
        return out

    def close(self) -> None:
        """Every file was whole at once."""

    def _next(self) -> None:
        self._number, self._placed = self._number + 1, 0

    def _dropped(self, number: int, records: Sequence[Record]) -> list[Any]:
        # Scenario files are read without what writes a ledger.
        from harness.run_folder.ledger import Answer, State

        form = self._into.dropped.form
        good = [record for record in records if form.takes(record.value)]
        state, error = self._write(number, [record.value for record in good]) if good else (State.FAILED, "")
        places = {record.seq: at for at, record in enumerate(good)}
        return [
            Answer(record.seq, state, number, places[record.seq])
            if record.seq in places and state is State.ACKNOWLEDGED
            else Answer(record.seq, state if record.seq in places else State.FAILED, error=error or form.refused)
            for record in records
        ]

    def _write(self, number: int, values: list[bytes]) -> tuple[Any, str]:
        """Return whether the file is there, and what the server said if it is not."""
        from harness.run_folder.ledger import State

        into, remote = self._into, self._into.remote
        assert remote is not None
        # Spark may list it at once.
        into.dropped.values[number] = values
        try:
            remote.write(into.dropped.file(number).name, into.dropped.form.written(values))
            return State.ACKNOWLEDGED, ""
        except StackError as failure:
            error, answer = str(failure), partial(self._answer, number, coming=_may_come(failure))
        try:
            what = f"an answer whether {into.dropped.file(number).name} is there"
            found = until(what, answer, within_s=BACK_S, every_s=0.2)
        except WaitError:
            into.doubtful.add(number)
            return State.UNKNOWN, error
        if found == "yes":
            return State.ACKNOWLEDGED, ""
        del into.dropped.values[number]
        return State.FAILED, error

    def _answer(self, number: int, *, coming: bool) -> str | Waiting:
        try:
            if self._into.there(number) is not None:
                return "yes"
        except StackError as failure:
            return Waiting(str(failure))
        return Waiting("it is not there, and may still come") if coming else "no"


def _may_come(failure: BaseException | None) -> bool:
    """Return whether the server can still be at work on the request: it has not answered, and the connection was
    neither refused nor cut off."""
    while failure is not None:
        if isinstance(failure, (OSError, http.client.HTTPException)) and not isinstance(failure, ConnectionError):
            return True
        failure = failure.__cause__
    return False


@dataclass(frozen=True)
class RemoteFiles:
    """A kind of source: files in a folder that a component keeps."""

    about: About
    component: str

    def asks(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
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
