"""One folder of files of a run that lies on a server: it is copied, and the copy is read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.components.files.sink.listing import Reader
from harness.components.files.sink.open_folder import OpenFolder, Rows
from harness.remote import RemoteFolder
from harness.remote.mirror import copied, walked
from harness.sinks.base import Reading
from harness.sinks.table import SinkColumn


@dataclass(frozen=True)
class RemoteOpenFolder:
    """The files below the folder `place` of `remote` that `reader` takes."""

    remote: RemoteFolder
    place: str
    rows: Rows
    reader: Reader

    @property
    def keeps_rows(self) -> bool:
        """What a manifest names is whole and stays; what a lister sees may still be written."""
        return self.reader is Reader.MANIFEST

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return its columns, without the rows."""
        with self._copy() as there:
            return there.columns()

    @contextmanager
    def reading(self, *, wait_ms: int = 0) -> Iterator[Reading]:
        """Its columns and rows, of the files that are there now."""
        with self._copy() as there, there.reading() as found:
            yield found

    def mark(self) -> str:
        """Return a fingerprint of names and what a listing says of each file, also of what is still being written."""
        found = walked(self.remote, self.place)
        seen = sorted(f"{name} {entry.size} {entry.stamp}" for name, entry in found if not entry.folder)
        digest = blake2b("\n".join(seen).encode(errors="surrogateescape"), digest_size=16).hexdigest()
        return f"{len(seen)} files, {digest}" if seen else "no such folder"

    def busy(self) -> str:
        """Nothing: no server writes for a process of the pipeline."""
        return ""

    @contextmanager
    def _copy(self) -> Iterator[OpenFolder]:
        scratch = self.remote.scratch
        if scratch is not None:
            scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="onceproof-copy-", dir=scratch) as temporary:
            to = Path(temporary) / (self.place.rpartition("/")[2] or "files")
            if self.remote.entries(self.place):
                copied(self.remote, self.place, to)
            named = Path(unquote(urlsplit(self.remote.url).path)) / self.place
            yield OpenFolder(to, self.rows, self.reader, named=named)
