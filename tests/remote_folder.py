"""A remote folder that is a local one, with what a server may do to who asks it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import StackError
from harness.remote import Entry


@dataclass
class LocalRemote:
    """`path` stands for the server's. `before` is called with the place of each listing before it is made; while
    `away` is set, nobody answers."""

    path: Path
    url: str = "hdfs://127.0.0.1:1/onceproof/run"
    scratch: Path | None = None
    before: Callable[[str], None] = lambda place: None
    away: threading.Event = field(default_factory=threading.Event)
    unread: set[str] = field(default_factory=set)
    """The files that are listed, and refused to who reads them."""

    def entries(self, place: str) -> list[Entry]:
        self._answer()
        self.before(place)
        folder = self.path / place
        return [_entry(each) for each in sorted(folder.iterdir())] if folder.is_dir() else []

    def read(self, place: str) -> bytes | None:
        self._answer()
        if place in self.unread:
            raise StackError(f"asked the server for {place}; its block is missing")
        file = self.path / place
        return file.read_bytes() if file.is_file() else None

    def write(self, place: str, data: bytes) -> None:
        self._answer()
        put(self.path / place, data)

    def delete(self, place: str) -> None:
        self._answer()
        found = self.path / place
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink(missing_ok=True)

    def _answer(self) -> None:
        if self.away.is_set():
            raise StackError("asked the server; connection refused")


def put(file: Path, data: bytes = b"") -> None:
    """Make a file whole, in a folder that is made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.parent.parent / f"beside-{file.name}"
    beside.write_bytes(data)
    beside.rename(file)


def _entry(path: Path) -> Entry:
    stat = path.stat()
    return Entry(path.name, path.is_dir(), stat.st_size, f"{stat.st_ino} {stat.st_mtime_ns}")
