"""A run's own blobs: those whose names begin with the prefix of one of its parts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.components.azure.blob import ACCOUNT, BlobService
from harness.machine import jars
from harness.remote import Entry
from harness.resources import Resources, labelled

CHECKPOINT = "checkpoint"
"""The folder of a part that a run's checkpoint lies in, and the placeholder that stands for it."""
CONTAINER = "onceproof"
CONF = {"spark.hadoop.fs.azure.storage.emulator.account.name": ACCOUNT}
"""What Spark is told: the connector knows the emulator's port and key."""
POLL_S = 0.005


@dataclass(frozen=True, kw_only=True)
class Room:
    """Those whose names begin with `prefix`, which ends with a `/`, as `harness.remote` wants a folder."""

    service: BlobService
    prefix: str
    scratch: Path | None = None

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

    def changed(self, within_s: float) -> None:
        """Ask again soon: nobody tells."""
        threading.Event().wait(min(POLL_S, within_s))


class Provides:
    """What the emulator does for a run."""

    service: BlobService
    scratch: Path | None = None

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """A prefix for each part; there is nothing to make. The one that is asked for the checkpoint gives
        `{checkpoint}` too."""
        return {part: self._made(part, self._room(run_id, part), asked) for part, asked in parts.items()}

    def _made(self, part: str, room: Room, asked: Mapping[str, Any]) -> Resources:
        there = {CHECKPOINT: room.below(CHECKPOINT).url} if asked.get(CHECKPOINT) else {}
        found = ",".join(map(str, jars.fetched("spark-azure")))
        return Resources(
            label=labelled("azure", part),
            at=room,
            placeholders={"path": room.url, "jars": found, **there},
            bare=tuple(there),
            conf=CONF,
        )

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Delete the blobs. Raises StackError, once everything was tried."""
        with contextlib.ExitStack() as steps:
            for part in names:
                steps.callback(self._room(run_id, part).delete, "")

    def _room(self, run_id: str, part: str) -> Room:
        return Room(service=self.service, prefix=f"{run_id}/{part or 'plain'}/", scratch=self.scratch)
