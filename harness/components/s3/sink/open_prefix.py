"""One sink of a run in an object store: fetched into a folder, and read there as files are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.components.files.sink.manifest import LOG
from harness.components.files.sink.open_folder import OpenFolder, Rows
from harness.components.s3.run_prefix import Room
from harness.errors import UsageError
from harness.sinks.base import Reading
from harness.sinks.table import SinkColumn

TRIES = 5
"""How often objects are fetched of which some are deleted meanwhile."""


@dataclass(frozen=True)
class OpenPrefix:
    """The objects below `name` in a room: those that Spark's file sink has committed, or all that a lister sees."""

    room: Room
    name: str
    rows: Rows
    by_manifest: bool

    @property
    def keeps_rows(self) -> bool:
        """What a manifest names is whole and stays, and so is an object that is there; what a lister sees may go."""
        return self.by_manifest

    def columns(self) -> tuple[SinkColumn, ...]:
        """Its columns, without the rows."""
        with self._fetched() as (folder, _):
            return folder.columns()

    @contextmanager
    def reading(self, *, wait_ms: int = 0) -> Iterator[Reading]:
        """Its columns and rows, of the objects that are there now. No lock keeps readers out."""
        with self._fetched() as (folder, mark), folder.reading(wait_ms=wait_ms) as found:
            yield found if self.by_manifest else found._replace(version=mark)

    def mark(self) -> str:
        """A fingerprint of names, sizes and contents."""
        return mark(self._listed())

    def busy(self) -> str:
        """Nothing: an object is there once its request is answered."""
        return ""

    def _listed(self) -> dict[str, str]:
        """By name below the sink's its size and tag."""
        below = f"{self.name}/"
        return {entry.key.removeprefix(below): f"{entry.size} {entry.tag}" for entry in self.room.listed(below)}

    @contextmanager
    def _fetched(self) -> Iterator[tuple[OpenFolder, str]]:
        """A folder with all of them, and what stands for just these. Raises UsageError, StackError."""
        for _ in range(TRIES):
            with TemporaryDirectory(prefix="onceproof-s3-") as temporary:
                folder, listed = Path(temporary, self.name), self._listed()
                if all(self._fetch(folder, name) for name in listed) and self._listed() == listed:
                    yield OpenFolder(folder, self.rows, by_manifest=self.by_manifest), mark(listed)
                    return
        raise UsageError(f"asked to read the objects of {self.name}; they changed each time")

    def _fetch(self, folder: Path, name: str) -> bool:
        data = self.room.read(f"{self.name}/{name}")
        if data is None:
            return False
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent == folder / LOG:
            # What it names is read where it was fetched to.
            data = data.replace(f'"{self.room.url}/{self.name}/'.encode(), f'"{folder.as_uri()}/'.encode())
        path.write_bytes(data)
        return True


def mark(listed: dict[str, str]) -> str:
    """What stands for just these objects."""
    lines = "\n".join(f"{name} {tag}" for name, tag in sorted(listed.items()))
    return f"{len(listed)} objects, {blake2b(lines.encode(), digest_size=16).hexdigest()}"
