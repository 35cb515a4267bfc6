"""A run's own folder in HDFS, as `harness.remote` wants one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from harness.components.hdfs.webhdfs import WebHdfs
from harness.errors import StackError
from harness.remote import Entry, joined


@dataclass(frozen=True)
class HdfsFolder:
    """The folder `path` of the file system that `server` asks and pipelines reach as `scheme` (`hdfs://host:port`).
    `scratch` is for copies."""

    server: WebHdfs
    scheme: str
    path: str
    scratch: Path | None = None

    @property
    def url(self) -> str:
        """Its address, as Spark takes it."""
        return f"{self.scheme}{self.path}"

    def below(self, place: str) -> HdfsFolder:
        """Return a folder in it."""
        return replace(self, path=self._at(place))

    def entries(self, place: str) -> list[Entry]:
        """Return the names in a folder; none where it is not there."""
        listing = self.server.there("LISTSTATUS", self._at(place))
        return [_entry(each) for each in listing["FileStatuses"]["FileStatus"]] if listing else []

    def read(self, place: str) -> bytes | None:
        """Return a file, whole; None where there is none."""
        return self.server.read(self._at(place))

    def write(self, place: str, data: bytes) -> None:
        """Written beside, and renamed."""
        folder, _, name = place.rpartition("/")
        hidden = self._at(joined(folder, f".{name}.{secrets.token_hex(4)}.tmp"))
        self.server.create(hidden, data)
        self.delete(place)
        renamed = self.server.ask("PUT", "RENAME", hidden, destination=self._at(place))
        if not renamed["boolean"]:
            raise StackError(f"asked HDFS to rename {hidden} to {self._at(place)}; it did not. Who else writes there?")

    def make(self) -> None:
        """Make the folder itself."""
        self.server.ask("PUT", "MKDIRS", self.path)

    def delete(self, place: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        self.server.ask("DELETE", "DELETE", self._at(place), recursive="true")

    def _at(self, place: str) -> str:
        return f"{self.path}/{place}" if place else self.path


def _entry(status: dict[str, object]) -> Entry:
    # A file of the same name that came later has another id.
    stamp = f"{status['fileId']} {status['modificationTime']} {status['length']}"
    size = status["length"]
    assert isinstance(size, int)
    return Entry(str(status["pathSuffix"]), status["type"] == "DIRECTORY", size, stamp)
