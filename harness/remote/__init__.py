"""A folder of a run that lies on a server's file system or in an object store. The harness cannot list it itself there.

mirror              a local copy
checkpoint_listing  what its listing says of a checkpoint of Spark's, straight from the server
parts               the folders that servers give to the parts of a run
objects             such a folder in an object store
http                asks a server over HTTP
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.errors import StackError


class Gone(StackError):
    """A file is named there, and what it held is nowhere any more."""


@dataclass(frozen=True)
class Entry:
    """What a listing says of one name. `stamp` is another one once the file is another one, or has changed; that of a
    folder says nothing."""

    name: str
    folder: bool = False
    size: int = 0
    stamp: str = ""


class RemoteFolder(Protocol):
    """One of them. Each `place` is a path below it, its parts parted by `/`; empty for itself. Several threads may ask.
    All raise StackError where the server does not answer, or refuses."""

    @property
    def url(self) -> str:
        """Its address, as Spark takes it, without a `/` at its end."""

    @property
    def scratch(self) -> Path | None:
        """A folder of the harness's own for copies, which goes with its session and need not be there yet; None: that
        of the system."""

    def entries(self, place: str) -> list[Entry]:
        """Return the names in a folder, as they were at one moment; none where it is not there."""

    def read(self, place: str) -> bytes | None:
        """Return a file, whole; None where it is not there any more. Raises Gone where the server has lost what it
        held."""

    def write(self, place: str, data: bytes) -> None:
        """Make a file, or another one in its place, which no reader sees before it is whole. Its folder is made."""

    def delete(self, place: str) -> None:
        """Remove a file, or a folder with all that is in it; silent about what is not there."""


def joined(*parts: str) -> str:
    """Return a place of several parts, empty ones left out."""
    return "/".join(filter(None, parts))
