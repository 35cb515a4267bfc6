"""The source `files`: a folder that files of records are dropped into, as Spark's file source reads it.

Each file is a partition of its own, and a line of it an offset: so it does not matter in which order Spark takes them.
It appears under its name by a rename, whole, and is never written to again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit

from harness.checkpoint import Offsets
from harness.errors import StackError
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About
from harness.resources import Resources, part
from harness.scenario import Input
from harness.sources.base import OpenSource, Sender
from harness.workloads.base import Record

if TYPE_CHECKING:
    # Scenario files are read without what writes a ledger.
    from harness.run_folder.ledger import Answer

LABEL = "files.input"
PER_FILE = 20
NAME = re.compile(r"records-([0-9]{6})\.txt")
LOGGED = re.compile(r"[0-9]+(\.compact)?")
TRIES = 3
"""How often Spark's own log is listed, which it may compact meanwhile."""


class PerFile(Shape):
    """How many records a file holds."""

    records_per_file: Annotated[int, v.whole(1, 100_000)] = PER_FILE


@dataclass
class OpenFolder:
    """The folder of one run. `dropped` has the records of each file that is, or was, there."""

    folder: Path
    per_file: int
    begins_with_input = True
    dropped: dict[int, list[bytes]] = field(default_factory=dict)

    def offsets(self, line: str, log: Path) -> Offsets | None:
        """A line of Spark's file source, `{"logOffset": 4}`, says how far its own log counts; a file is in a batch
        whole. None where that log names files of another folder, or says nothing of what is reached."""
        reached = _reached(line)
        if reached is None or reached < 0:
            return None if reached is None else {}
        seen = [Path(unquote(urlsplit(entry["path"]).path)) for entry in entries(log) if entry["batchId"] <= reached]
        ours = [path for path in seen if path.parent == self.folder]
        if not ours:
            return None
        numbers = [int(found[1]) for path in ours if (found := NAME.fullmatch(path.name))]
        return {number: len(self.dropped[number]) for number in sorted(numbers) if number in self.dropped}

    def sender(self) -> Sender:
        """Who writes the files."""
        return FileSender(self)

    def ends(self) -> Offsets:
        """How many records each file has that was dropped."""
        return {number: len(values) for number, values in sorted(self.dropped.items())}

    def read_back(self, path: Path, *, within_s: float) -> Offsets:
        """The files as they lie there; what the pipeline has taken away (`cleanSource`) as it was dropped. Raises
        StackError where a file is not what was dropped."""
        from harness.run_folder.ledger import write_source

        write_source(path, self._batches())
        return self.ends()

    def _batches(self) -> Iterator[Any]:
        import pyarrow as pa

        from harness.run_folder.ledger import SOURCE

        for number, values in sorted(self.dropped.items()):
            file = self.folder / named(number)
            try:
                dropped_ms, there = int(file.stat().st_mtime * 1000), file.read_bytes()
            except FileNotFoundError:
                dropped_ms, there = 0, text(values)
            if there != text(values):
                raise StackError(f"asked for {file} as it was dropped; it was changed. Who else writes there?")
            rows = [
                {
                    "partition": number,
                    "offset": at,
                    "timestamp_ms": dropped_ms,
                    "key": None,
                    "value": value,
                    "seq": None,
                }
                for at, value in enumerate(values)
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=SOURCE)


class FileSender:
    """Drops files into the folder. A file holds at most `per_file` records of one call."""

    def __init__(self, into: OpenFolder) -> None:
        self._into = into
        self._number, self._placed = 0, 0

    def placed(self, record: Record) -> Record:
        """With the number of its file."""
        if self._placed == self._into.per_file:
            self._next()
        self._placed += 1
        return record._replace(partition=self._number)

    def send(self, records: Sequence[Record]) -> list[Answer]:
        """A record that would be no line, or an empty one, is refused."""
        out: list[Answer] = []
        for number, group in groupby(records, key=attrgetter("partition")):
            out += self._dropped(int(number or 0), list(group))
        self._next()
        return out

    def close(self) -> None:
        """Nothing is held."""

    def _next(self) -> None:
        self._number, self._placed = self._number + 1, 0

    def _dropped(self, number: int, records: Sequence[Record]) -> list[Answer]:
        from harness.run_folder.ledger import Answer, State

        good = [record for record in records if is_line(record.value)]
        failure = self._write(number, [record.value for record in good]) if good else ""
        places = {record.seq: at for at, record in enumerate(good)}
        return [
            Answer(record.seq, State.ACKNOWLEDGED, number, places[record.seq])
            if record.seq in places and not failure
            else Answer(
                record.seq, State.FAILED, error=failure or "it is no line of a file: empty, or with a line break"
            )
            for record in records
        ]

    def _write(self, number: int, values: list[bytes]) -> str:
        """Why there is no such file; empty if it is there."""
        file = self._into.folder / named(number)
        hidden = file.with_name(f".{file.name}.tmp")
        # Spark may list it at once.
        self._into.dropped[number] = values
        try:
            with hidden.open("wb") as out:
                out.write(text(values))
                out.flush()
                os.fsync(out.fileno())
            hidden.rename(file)
        except OSError as refused:
            del self._into.dropped[number]
            hidden.unlink(missing_ok=True)
            return f"the file {file.name} could not be written: {refused.strerror}"
        return ""


class Files:
    """Read by Spark's file source."""

    about = About(
        name="files",
        summary="files of records, one a line, dropped into a folder of the run's own, {files.input.path}",
        example="{source: files, records_per_file: 20}",
        options=PerFile,
    )

    def asks(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """A folder."""
        return {LABEL: {}}

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """The folder."""
        folder: Path = part(own, LABEL).at.folder
        return OpenFolder(folder, int(given.source_options.get("records_per_file", PER_FILE)))


def named(number: int) -> str:
    """What a file is called."""
    return f"records-{number:06}.txt"


def text(values: Iterable[bytes]) -> bytes:
    """A file's contents: a record is a line."""
    return b"".join(value + b"\n" for value in values)


def is_line(value: bytes) -> bool:
    """Does a reader of lines get it back? A reader of JSON passes an empty one over."""
    return bool(value.strip()) and b"\n" not in value and b"\r" not in value


def _reached(line: str) -> int | None:
    try:
        said: Any = json.loads(line)
    except ValueError:
        return None
    reached = said.get("logOffset") if isinstance(said, dict) and len(said) == 1 else None
    return reached if isinstance(reached, int) and not isinstance(reached, bool) else None


def entries(log: Path) -> list[dict[str, Any]]:
    """What Spark's file source has noted: `N` has the files of one of its batches, `N.compact` those of all up to it.
    Each entry has `path` (a URI) and `batchId`. Empty while there is no log."""
    for _ in range(TRIES):
        try:
            files = [file for file in log.iterdir() if LOGGED.fullmatch(file.name)]
            lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()[1:]]
        except OSError:
            # Compacted away since it was listed, or not there yet.
            continue
        return [each for each in map(_entry, lines) if each is not None]
    return []


def _entry(line: str) -> dict[str, Any] | None:
    try:
        said: Any = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(said, dict) and isinstance(said.get("path"), str) and isinstance(said.get("batchId"), int)
    return said if whole else None


KIND = Files()
