"""One folder of files of a run, where it can be reached."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.components.files.sink import listing, manifest
from harness.components.files.sink.listing import DataFile, Reader
from harness.sinks.base import Reading
from harness.sinks.table import SinkColumn


class Rows(Protocol):
    """How the rows of files are read; `name` is the sink's."""

    def reading(self, name: str, files: list[DataFile], version: str) -> AbstractContextManager[Reading]:
        """Return columns and canonical rows. Raises Missing, UsageError."""

    def columns(self, name: str, files: list[DataFile]) -> tuple[SinkColumn, ...]:
        """Return the columns alone. Raises Missing, UsageError."""


@dataclass(frozen=True)
class OpenFolder:
    """The files below `folder` that `reader` takes. `named` is what its manifest calls the folder, where that is a
    copy."""

    folder: Path
    rows: Rows
    reader: Reader
    named: Path | None = None

    @property
    def keeps_rows(self) -> bool:
        """What a manifest names is whole and stays; what a lister sees may still be written."""
        return self.reader is Reader.MANIFEST

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return its columns, without the rows."""
        files, _ = self._files()
        return self.rows.columns(self.folder.name, files)

    def reading(self, *, wait_ms: int = 0) -> AbstractContextManager[Reading]:
        """Return its columns and rows, of the files that are there now. No lock keeps readers out."""
        files, version = self._files()
        return self.rows.reading(self.folder.name, files, version)

    def mark(self) -> str:
        """Return a fingerprint of names, sizes and times, also of what is still being written."""
        return listing.fingerprint(self.folder) if self.folder.is_dir() else "no such folder"

    def busy(self) -> str:
        """Nothing: no server writes for a process of the pipeline. A `_temporary` that is there tells of no writer: who
        is killed leaves it for good."""
        return ""

    def _files(self) -> tuple[list[DataFile], str]:
        """Return the files, and what stands for just these."""
        if self.reader is not Reader.MANIFEST:
            recursive = self.reader is Reader.RECURSIVE
            return listing.listed(self.folder, recursive=recursive), listing.fingerprint(self.folder)
        number, files = manifest.committed(self.folder, named=self.named)
        return files, f"batch {number} of its manifest, {len(files)} files"
