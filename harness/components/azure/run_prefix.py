"""A run's own blobs: those whose names begin with the prefix of one of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.components.azure.blob import ACCOUNT, BlobService
from harness.machine import jars
from harness.remote import Entry, Wait
from harness.remote.parts import ProvidesFolders, soon
from harness.remote.relay.server import Relay
from harness.resources import Resources, labelled

CONTAINER = "onceproof"
CONF = {"spark.hadoop.fs.azure.storage.emulator.account.name": ACCOUNT}
"""What Spark is told: the connector knows the emulator's port and key."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """Those whose names begin with `prefix`, which ends with a `/`, as `harness.remote` wants a folder."""

    service: BlobService
    prefix: str
    scratch: Path | None = None
    relay: Relay | None = field(default=None, repr=False, compare=False)
    """What the run's programs ask it through: the harness asks the emulator itself."""

    @property
    def listed_how(self) -> str:
        """In words."""
        return "by the protocol of Azure's blobs, again and again"

    @property
    def url(self) -> str:
        """Its address, as Spark takes it."""
        return f"wasb://{CONTAINER}@{ACCOUNT}/{self.prefix.rstrip('/')}"

    def below(self, place: str) -> Room:
        """A folder in it."""
        return replace(self, prefix=f"{self.prefix}{place}/")

    def entries(self, place: str) -> list[Entry]:
        """The names in a folder; none where it is not there. An empty blob that marks a folder is that folder."""
        below = f"{self.prefix}{place}/" if place else self.prefix
        found = list(self.service.listed(CONTAINER, below, deep=False))
        names = {each.name.removeprefix(below): each for each in found if each.name != below}
        folders = {name.rstrip("/") for name in names if name.endswith("/")}
        files = {name: each for name, each in names.items() if not name.endswith("/") and name not in folders}
        return [
            *(Entry(name, folder=True) for name in sorted(folders)),
            *(Entry(name, size=each.size, stamp=each.tag) for name, each in files.items()),
        ]

    def read(self, place: str) -> bytes | None:
        """A blob; None if there is none."""
        return self.service.read(CONTAINER, f"{self.prefix}{place}")

    def write(self, place: str, data: bytes) -> None:
        """A blob is whole, or not there."""
        self.service.write(CONTAINER, f"{self.prefix}{place}", data)

    def delete(self, place: str) -> None:
        """A blob, and all that is below such a folder; silent about what is not there."""
        below = f"{self.prefix}{place}/" if place else self.prefix
        for each in list(self.service.listed(CONTAINER, below, deep=True)):
            self.service.delete(CONTAINER, each.name)
        if below.rstrip("/"):
            self.service.delete(CONTAINER, below.rstrip("/"))

    def changes(self) -> AbstractContextManager[Wait]:
        """Nobody tells of one."""
        return soon()


class Provides(ProvidesFolders):
    """What the emulator does for a run."""

    service: BlobService
    scratch: Path | None = None
    relay: Relay | None = None

    def _made(self, part: str, folder: Room, there: Mapping[str, str]) -> Resources:
        """There is nothing to make."""
        found = ",".join(map(str, jars.fetched("spark-azure")))
        return Resources(
            label=labelled("azure", part),
            at=folder,
            placeholders={"path": folder.url, "jars": found, **there},
            bare=tuple(there),
            conf=CONF,
        )

    def _folder(self, run_id: str, part: str) -> Room:
        return Room(service=self.service, prefix=f"{run_id}/{part or 'plain'}/", scratch=self.scratch, relay=self.relay)
