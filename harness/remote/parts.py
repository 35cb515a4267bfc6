"""What servers that keep folders of runs have in common: a folder for each part of a run, and in one of them the
checkpoint."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from harness.remote import RemoteFolder
from harness.resources import GivesParts, Resources

if TYPE_CHECKING:
    from harness.remote.proxy.commits import Commits

CHECKPOINT = "checkpoint"
"""The folder of a part that a run's checkpoint is in, and the placeholder that stands for it."""


class PartFolder(RemoteFolder, Protocol):
    """The folder of one part."""

    def below(self, place: str) -> Self:
        """Return a folder in it."""


class ProvidesFolders(GivesParts):
    """What every such server does for a run; `shared` says that it has other users, `scratch` is for copies."""

    shared = False
    scratch: Path | None = None

    def _give(self, run_id: str, name: str, request: Mapping[str, Any]) -> Resources:
        """Make a folder; that of the part that keeps the checkpoint gives `{checkpoint}` too."""
        folder = self._folder(run_id, name)
        there = {CHECKPOINT: folder.below(CHECKPOINT).url} if request.get(CHECKPOINT) else {}
        made = self._made(name, folder)
        placeholders = {**made.placeholders, **there}
        return replace(made, placeholders=placeholders, bare=tuple(there), shared=self.shared)

    def _take(self, run_id: str, name: str) -> None:
        self._folder(run_id, name).delete("")

    @abstractmethod
    def _folder(self, run_id: str, part: str) -> PartFolder:
        """Return that of a part, which need not be there yet."""

    @abstractmethod
    def _made(self, part: str, folder: Any) -> Resources:
        """Make a part's folder, as `_folder` gives it. Raises StackError."""


class CheckpointInPart:
    """A kind of component whose parts can hold a checkpoint."""

    def checkpoints(self, own: Resources) -> RemoteFolder:
        """Return the folder that `{checkpoint}` stands for."""
        found: RemoteFolder = own.at.below(CHECKPOINT)
        return found


class CommitsInPart(CheckpointInPart):
    """One whose requests can be held too."""

    def commits(self, own: Resources) -> Commits | None:
        """Return what sees the requests of the checkpoints there; None for a part that was given no proxy."""
        found: Commits | None = own.at.below(CHECKPOINT).commits()
        return found
