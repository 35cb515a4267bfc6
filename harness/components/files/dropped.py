"""The files of a run's input: how each is called and written, and when Spark has taken it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from harness.checkpoint import listing
from harness.components.files.forms import FORMS, Afterwards, Form, Format
from harness.errors import WaitError
from harness.run_folder.ledger import Answer, State
from harness.wait import Deadline, until
from harness.workloads.base import Record

NAME = re.compile(r"records-([0-9]{6})\.(?:txt|parquet)")
MOVED = "moved-"
"""What the name of a file begins with that its writer has renamed."""
TAKEN_S = 15.0


@dataclass
class Dropped:
    """What there is: the records of each file by its number. `planned` has the checkpoint in which a file was first
    seen in a batch, with the newest batch that was committed by then."""

    folder: Path
    form: Form = FORMS[Format.LINES]
    values: dict[int, list[bytes]] = field(default_factory=dict)
    planned: dict[int, tuple[Path, int]] = field(default_factory=dict)

    def file(self, number: int) -> Path:
        """Return where it lies."""
        return self.folder / f"records-{number:06}.{self.form.suffix}"

    def is_planned(self, number: int, checkpoint: Path) -> None:
        """A batch of that checkpoint has it."""
        if number not in self.planned:
            self.planned[number] = checkpoint, newest(checkpoint)

    def taken(self, number: int) -> bool:
        """Return whether a batch is done since it was planned, and so has taken it."""
        checkpoint, before = self.planned.get(number, (None, 0))
        return checkpoint is not None and newest(checkpoint) > before


def newest(checkpoint: Path) -> int:
    """Return the newest batch that is committed; -1 before the first."""
    return max(listing(checkpoint)["commits"], default=-1)


class FileSender:
    """Drops files of at most `per_file` records; one that a call has begun takes no records of the next. `in_place`:
    half of a file at first, under its name already, and the rest at a later call, once a batch that has it is
    committed; `torn`: with half of the next record. Then also comes what its writer does `afterwards`. At the end a
    file in place is completed that no batch has taken, so that the input is what the ledger says."""

    def __init__(
        self,
        into: Dropped,
        per_file: int,
        *,
        in_place: bool = False,
        torn: bool = False,
        afterwards: Afterwards = Afterwards.NOTHING,
    ) -> None:
        self._into, self._per_file, self._in_place, self._torn = into, per_file, in_place, torn
        self._afterwards = afterwards
        self._number, self._placed = 0, 0
        self._later: dict[int, Callable[[Path], object]] = {}
        self._wanted, self._changed, self._gone = 0, 0, 0

    @property
    def unmet(self) -> str:
        """After `close`: why the input was not changed as it was asked for; empty if it was."""
        if self._gone and self._in_place:
            return f"{self._gone} files were gone before the rest of their records was written"
        if not self._wanted or self._changed:
            return ""
        how = "seen before it was whole" if self._in_place else f"{self._afterwards} once it was taken"
        return f"no file was {how}: none of {self._wanted} was in a batch that was committed by then"

    def placed(self, record: Record) -> Record:
        """With the number of its file."""
        if self._placed == self._per_file:
            self._next()
        self._placed += 1
        return record._replace(partition=self._number)

    def send(self, records: Sequence[Record]) -> list[Answer]:
        """A record that cannot be in a file of this form is refused: one that would be no line, say."""
        self._go_on()
        out: list[Answer] = []
        for number, group in groupby(records, key=attrgetter("partition")):
            out += self._dropped(int(number or 0), list(group))
        self._next()
        return out

    def close(self) -> None:
        """Write what is left."""
        self._go_on()
        for number in list(self._later) if self._in_place else ():
            change, file = self._later.pop(number), self._into.file(number)
            if file.exists():
                change(file)

    def _go_on(self) -> None:
        """Change each file that a batch has taken. One whose batch is still to be done stays as it is: it would be
        gone for that batch, or whole."""
        deadline = Deadline(TAKEN_S)
        for number, change in list(self._later.items()):
            file = self._into.file(number)
            with suppress(WaitError):
                until(f"{file.name} to be taken", partial(self._into.taken, number), within_s=deadline.left_s())
            if not self._into.taken(number):
                continue
            del self._later[number]
            # Who takes files away does so once their batch is committed.
            if file.exists():
                change(file)
                self._changed += 1
            else:
                self._gone += 1

    def _next(self) -> None:
        self._number, self._placed = self._number + 1, 0

    def _dropped(self, number: int, records: Sequence[Record]) -> list[Answer]:
        form = self._into.form
        good = [record for record in records if form.takes(record.value)]
        state, error = self._write(number, [record.value for record in good]) if good else (State.FAILED, "")
        places = {record.seq: at for at, record in enumerate(good)}
        return [
            Answer(record.seq, state, number, places[record.seq])
            if record.seq in places and state is State.ACKNOWLEDGED
            else Answer(record.seq, state if record.seq in places else State.FAILED, error=error or form.refused)
            for record in records
        ]

    def _write(self, number: int, values: list[bytes]) -> tuple[State, str]:
        """Return whether the file is there, and why it is not."""
        file, whole = self._into.file(number), self._into.form.written(values)
        seen = self._at_first(values) if self._in_place else whole
        # Spark may list it at once.
        self._into.values[number] = values
        try:
            _replace(file, seen)
        except OSError as refused:
            del self._into.values[number]
            return State.FAILED, f"the file {file.name} could not be written: {refused.strerror}"
        self._wanted += int(self._in_place or self._afterwards is not Afterwards.NOTHING)
        if len(seen) < len(whole):
            self._later[number] = partial(_append, data=whole[len(seen) :])
        elif self._afterwards is Afterwards.RENAMED:
            self._later[number] = _rename
        elif self._afterwards is Afterwards.REWRITTEN:
            self._later[number] = partial(_replace, data=whole)
        return State.ACKNOWLEDGED, ""

    def _at_first(self, values: Sequence[bytes]) -> bytes:
        """Return what of a file of lines is there before the rest: its first half, and half of a record where it is
        torn."""
        half = len(values) // 2
        torn = values[half][: len(values[half]) // 2] if self._torn else b""
        return self._into.form.written(values[:half]) + torn


def _rename(file: Path) -> None:
    file.rename(file.with_name(f"{MOVED}{file.name}"))


def _replace(file: Path, data: bytes) -> None:
    """Write it whole beside, and then under its name. Raises OSError, and leaves nothing then."""
    hidden = file.with_name(f".{file.name}.tmp")
    try:
        _append(hidden, data)
        hidden.rename(file)
    except OSError:
        hidden.unlink(missing_ok=True)
        raise


def _append(file: Path, data: bytes) -> None:
    with file.open("ab") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
