"""The folders of runs below a session's own, for a component that is no server: one for each part, which driver and
executors see under one path. What can fail is the disk."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import StackError
from harness.resources import GivesParts, Resources, labelled


@dataclass(frozen=True)
class Folder:
    """How the harness finds a part's."""

    folder: Path


class RunFolders(GivesParts):
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

    def placeholders(self, folder: Path) -> dict[str, str]:
        """Return those of a part."""
        return {"path": str(folder)}

    def _take(self, run_id: str, name: str) -> None:
        """A zombie may go on writing there; what it writes goes with the session's folder."""
        place = self._place(run_id, name)
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty: it has others
            place.parent.rmdir()

    def close(self) -> None:
        """Nothing is held."""

    def _give(self, run_id: str, name: str, request: Mapping[str, Any]) -> Resources:
        folder = self._place(run_id, name)
        try:
            folder.mkdir(parents=True)
        except OSError as refused:
            raise StackError(f"asked for the folder {folder}; {refused.strerror}") from refused
        label = labelled(self._component, name)
        return Resources(label=label, at=Folder(folder), placeholders=self.placeholders(folder))

    def _place(self, run_id: str, part: str) -> Path:
        return self.root / run_id / (part or self._plain)
