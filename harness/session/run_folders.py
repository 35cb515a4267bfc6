"""The folders of runs below a session's own, for a component that is no server: one for each part, which driver and
executors see under one path. What can fail is the disk."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import StackError
from harness.resources import Resources, labelled


@dataclass(frozen=True)
class Folder:
    """How the harness finds a part's."""

    folder: Path


class RunFolders:
    """All of them, in `root`. `component` is whose they are; the folder of a run's plain part is called `plain`, those
    of other parts as they are."""

    mode = 0o700
    """Who may see the folder that holds them."""

    def __init__(self, root: Path, *, component: str, plain: str) -> None:
        self.root = root
        self._component, self._plain = component, plain

    def start(self) -> None:
        """Make the folder that holds them. Raises StackError."""
        try:
            self.root.mkdir(mode=self.mode, exist_ok=True)
        except OSError as refused:
            raise StackError(f"asked for the folder {self.root}; {refused.strerror}") from refused

    def check(self) -> None:
        """Raise StackError if it is gone."""
        if not self.root.is_dir():
            raise StackError(f"the folder {self.root} is gone; who removes files there?")

    def describe(self) -> Mapping[str, Any]:
        """There is no version of a folder."""
        return {"settings": {}}

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """Return a folder for each part. Raises StackError."""
        return {part: self._made(part, self._place(run_id, part)) for part in parts}

    def placeholders(self, folder: Path) -> dict[str, str]:
        """Return those of a part."""
        return {"path": str(folder)}

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Remove the folders. A zombie may go on writing there; what it writes goes with the session's folder."""
        for part in names:
            place = self._place(run_id, part)
            shutil.rmtree(place, ignore_errors=True)
            with contextlib.suppress(OSError):  # not empty: it has others
                place.parent.rmdir()

    def close(self) -> None:
        """Nothing is held."""

    def _made(self, part: str, folder: Path) -> Resources:
        try:
            folder.mkdir(parents=True)
        except OSError as refused:
            raise StackError(f"asked for the folder {folder}; {refused.strerror}") from refused
        label = labelled(self._component, part)
        return Resources(label=label, at=Folder(folder), placeholders=self.placeholders(folder))

    def _place(self, run_id: str, part: str) -> Path:
        return self.root / run_id / (part or self._plain)
