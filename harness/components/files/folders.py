"""The folders of runs: one for each part."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import StackError
from harness.resources import Resources, labelled

PLAIN = "output"
"""What the folder of the plain part is called."""


@dataclass(frozen=True)
class Folder:
    """How the harness finds it."""

    folder: Path


class Folders:
    """All of them, below one. There is no server: what can fail is the disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def start(self) -> None:
        """Make the folder. Raises StackError."""
        try:
            self.root.mkdir(mode=0o700, exist_ok=True)
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
        """A folder for each part. Raises StackError."""
        return {part: self._made(part, self.root / run_id / (part or PLAIN)) for part in parts}

    def _made(self, part: str, folder: Path) -> Resources:
        try:
            folder.mkdir(parents=True)
        except OSError as refused:
            raise StackError(f"asked for the folder {folder}; {refused.strerror}") from refused
        return Resources(label=labelled("files", part), at=Folder(folder), placeholders={"path": str(folder)})

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Remove them."""
        for part in names:
            shutil.rmtree(self.root / run_id / (part or PLAIN), ignore_errors=True)
        if not any((self.root / run_id).glob("*")):
            shutil.rmtree(self.root / run_id, ignore_errors=True)

    def close(self) -> None:
        """Nothing is held."""
