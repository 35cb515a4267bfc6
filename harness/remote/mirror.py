"""A local copy of the checkpoints below a remote folder: code that reads checkpoint files reads them here.

A checkpoint is copied when the agent in Spark reports an operation on it, while the thread that made it stands still.
What lies below `state` is not copied, nor a file that has its temporary name yet.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from harness.errors import StackError, UsageError
from harness.remote import Entry, RemoteFolder, joined
from harness.wait import Deadline

COPIED_S = 20.0
"""How long a folder may change that is copied."""
LOGS = ("commits", "offsets")
"""In this order: who sees a commit sees its plan, and what the source has taken for that."""
METADATA, SOURCES, STATE = "metadata", "sources", "state"


class Mirror:
    """Copies checkpoints below `remote` to `folder`, each under its place; `scratch` is a folder of the same disk."""

    def __init__(self, remote: RemoteFolder, folder: Path, *, scratch: Path) -> None:
        self.remote, self.folder, self._scratch = remote, folder, scratch
        scratch.mkdir(parents=True, exist_ok=True)
        self._stamps: dict[str, dict[str, str]] = {}
        """By checkpoint, the stamp of each file that is here."""
        self._lock = threading.Lock()

    def place(self, folder: Path) -> str | None:
        """Return the place that a local folder is the copy of; None for one that is no copy."""
        if not folder.is_relative_to(self.folder):
            return None
        found = folder.relative_to(self.folder).as_posix()
        return "" if found == "." else found

    def refresh(self) -> None:
        """Copy each known checkpoint as it is now. Raises StackError as `copy` does."""
        for place in list(self._stamps):
            self.copy(place)

    def copy(self, place: str) -> None:
        """Copy the checkpoint at `place` as it is now. Raises StackError, of a file that is listed and cannot be read
        once the others are copied."""
        with self._lock:
            here = self._stamps.setdefault(place, {})
            found = dict(self._listed(place))
            for gone in here.keys() - found.keys():
                (self.folder / place / gone).unlink(missing_ok=True)
                del here[gone]
            unread: list[str] = []
            for name, entry in found.items():
                if here.get(name) == entry.stamp:
                    continue
                try:
                    data = self.remote.read(joined(place, name))
                except StackError as failure:
                    path = f"{self.remote.url}/{joined(place, name)}"
                    unread.append(f"asked for {path}, which is listed; it cannot be read: {failure}")
                    continue
                if data is not None:
                    self._write(self.folder / place / name, data)
                    here[name] = entry.stamp
            if unread:
                raise StackError(unread[0])

    def _listed(self, place: str) -> Iterator[tuple[str, Entry]]:
        top = {entry.name: entry for entry in self.remote.entries(place)}
        (self.folder / place).mkdir(parents=True, exist_ok=True)
        if METADATA in top:
            yield METADATA, top[METADATA]
        folders = {name for name, entry in top.items() if entry.folder}
        if STATE in folders:
            (self.folder / place / STATE).mkdir(parents=True, exist_ok=True)
        logs = [log for log in LOGS if log in folders]
        for log in logs:
            yield from self._files(place, log)
        if SOURCES in folders:
            for source in self.remote.entries(joined(place, SOURCES)):
                yield from self._files(place, joined(SOURCES, source.name))

    def _files(self, place: str, log: str) -> Iterator[tuple[str, Entry]]:
        (self.folder / place / log).mkdir(parents=True, exist_ok=True)
        for entry in self.remote.entries(joined(place, log)):
            if not entry.folder and not entry.name.startswith("."):
                yield joined(log, entry.name), entry

    def _write(self, to: Path, data: bytes) -> None:
        beside = self._scratch / "next"
        beside.write_bytes(data)
        beside.replace(to)


def copied(remote: RemoteFolder, place: str, to: Path) -> None:
    """Copy a tree, all files of it, into the folder `to`, which is made again. No listing shows all of it at one
    moment, and a file that is renamed meanwhile may be in none: so it is listed until nothing has changed since it was
    copied. Raises StackError, and UsageError for one that changes all the time."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    here: dict[str, Entry] = {}
    limit: Deadline | None = None
    while (now := dict(walked(remote, place))) != here:
        if limit is not None and limit.over():
            other = next(name for name in sorted({*now, *here}) if now.get(name) != here.get(name))
            saw = f"it changed again and again for {limit.seconds:g} s, at last in {other}"
            raise UsageError(f"asked to copy {remote.url}/{place}; {saw}. Who else writes there?")
        _bring(remote, place, to, now=now, here=here)
        # What is there at first may take long; later on only what has changed is read.
        limit = limit or Deadline(COPIED_S)


def walked(remote: RemoteFolder, place: str, below: str = "") -> Iterator[tuple[str, Entry]]:
    """Yield all names below a folder, each with where it lies there, and a folder before what is in it. Raises
    StackError."""
    for entry in remote.entries(joined(place, below)):
        inside = joined(below, entry.name)
        if entry.folder:
            # Whatever else a listing says of it: it is the same one when something comes or goes in it.
            yield inside, Entry(entry.name, folder=True)
            yield from walked(remote, place, inside)
        else:
            yield inside, entry


def _bring(remote: RemoteFolder, place: str, to: Path, *, now: dict[str, Entry], here: dict[str, Entry]) -> None:
    """Copy what is `now` there and not `here`, and remove what is no more; what goes before it is read is not here."""
    for gone in [name for name, entry in here.items() if now.get(name) != entry]:
        was = here.pop(gone)
        if was.folder:
            shutil.rmtree(to / gone, ignore_errors=True)
        else:
            (to / gone).unlink(missing_ok=True)
    for name, entry in now.items():
        if name in here:
            continue
        if entry.folder:
            (to / name).mkdir()
        elif (data := remote.read(joined(place, name))) is not None:
            (to / name).write_bytes(data)
        else:
            continue
        here[name] = entry
