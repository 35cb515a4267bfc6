"""The files of a run's input: how each is called and written, and when Spark has taken it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from harness.checkpoint import listing
from harness.errors import WaitError
from harness.run_folder.ledger import Answer, State
from harness.sources.lines import NO_LINE, is_line, text
from harness.wait import Deadline, until
from harness.workloads.base import Record

NAME = re.compile(r"records-([0-9]{6})\.txt")
TAKEN_S = 15.0


@dataclass
class Dropped:
    """What there is: the records of each file by its number. `planned` has the checkpoint in which a file was first
    seen in a batch, with the newest batch that was committed by then."""

    folder: Path
    values: dict[int, list[bytes]] = field(default_factory=dict)
    planned: dict[int, tuple[Path, int]] = field(default_factory=dict)

    def file(self, number: int) -> Path:
        """Where it lies."""
        return self.folder / f"records-{number:06}.txt"

    def is_planned(self, number: int, checkpoint: Path) -> None:
        """A batch of that checkpoint has it."""
        if number not in self.planned:
            self.planned[number] = checkpoint, newest(checkpoint)

    def taken(self, number: int) -> bool:
        """Is a batch done since it was planned, and so the one that has it?"""
        checkpoint, before = self.planned.get(number, (None, 0))
        return checkpoint is not None and newest(checkpoint) > before


def newest(checkpoint: Path) -> int:
    """The newest batch that is committed; -1 before the first."""
    return max(listing(checkpoint)["commits"], default=-1)


class FileSender:
    """Drops files of at most `per_file` records; one that a call has begun takes no records of the next. `in_place`:
    half of a file at first, under its name already, and the rest at the next call, or at the end, once a batch has
    taken it."""

    def __init__(self, into: Dropped, per_file: int, *, in_place: bool = False) -> None:
        self._into, self._per_file, self._in_place = into, per_file, in_place
        self._number, self._placed = 0, 0
        self._rest: dict[int, list[bytes]] = {}

    def placed(self, record: Record) -> Record:
        """With the number of its file."""
        if self._placed == self._per_file:
            self._next()
        self._placed += 1
        return record._replace(partition=self._number)

    def send(self, records: Sequence[Record]) -> list[Answer]:
        """A record that would be no line, or an empty one, is refused."""
        self._go_on()
        out: list[Answer] = []
        for number, group in groupby(records, key=attrgetter("partition")):
            out += self._dropped(int(number or 0), list(group))
        self._next()
        return out

    def close(self) -> None:
        """Write what is left."""
        self._go_on()

    def _go_on(self) -> None:
        deadline = Deadline(TAKEN_S)
        for number, values in self._rest.items():
            file = self._into.file(number)
            with suppress(WaitError):
                until(f"{file.name} to be taken", partial(self._into.taken, number), within_s=deadline.left_s())
            # Who takes files away does so once their batch is committed.
            if file.exists():
                _append(file, values)
        self._rest = {}

    def _next(self) -> None:
        self._number, self._placed = self._number + 1, 0

    def _dropped(self, number: int, records: Sequence[Record]) -> list[Answer]:
        good = [record for record in records if is_line(record.value)]
        failure = self._write(number, [record.value for record in good]) if good else ""
        places = {record.seq: at for at, record in enumerate(good)}
        return [
            Answer(record.seq, State.ACKNOWLEDGED, number, places[record.seq])
            if record.seq in places and not failure
            else Answer(record.seq, State.FAILED, error=failure or NO_LINE)
            for record in records
        ]

    def _write(self, number: int, values: list[bytes]) -> str:
        """Why there is no such file; empty if it is there."""
        file = self._into.file(number)
        hidden = file.with_name(f".{file.name}.tmp")
        half = len(values) // 2 if self._in_place else len(values)
        # Spark may list it at once.
        self._into.values[number] = values
        try:
            _append(hidden, values[:half])
            hidden.rename(file)
        except OSError as refused:
            del self._into.values[number]
            hidden.unlink(missing_ok=True)
            return f"the file {file.name} could not be written: {refused.strerror}"
        if half < len(values):
            self._rest[number] = values[half:]
        return ""


def _append(file: Path, values: Sequence[bytes]) -> None:
    with file.open("ab") as out:
        out.write(text(values))
        out.flush()
        os.fsync(out.fileno())
