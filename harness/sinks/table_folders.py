"""Folders for the tables of runs, below the session's own, of a table format that is a library in driver and executors.

Nothing runs here. The format's jars come from Maven Central, are pinned, and reach a program by a placeholder, as a
user's own program names them under `spark.jars`. Programs that do not ask for them do not get them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import StackError
from harness.machine import jars
from harness.machine.java import Java
from harness.resources import Resources, labelled
from harness.session.session import Session

PLAIN = "tables"
"""What the folder of a run's plain part is called; other parts' are called as they are."""


@dataclass(frozen=True)
class Tables:
    """How the harness finds a part's tables."""

    folder: Path


class TableFolders:
    """The folders of all runs of a session. `component` is whose they are, `reader` the Python package that reads its
    tables back."""

    def __init__(self, session: Session, java: Java, *, component: str, reader: str) -> None:
        self._java, self._component, self._reader = java, component, reader
        self._jars: tuple[Path, ...] = ()
        self.folder = session.folder / component

    def start(self) -> None:
        """Find the jars, or fetch them. Raises StackError."""
        self._jars = jars.fetched(f"spark-{self._component}", self._java)
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def check(self) -> None:
        """Nothing of ours could have died."""

    def describe(self) -> Mapping[str, Any]:
        """The jars, and what reads the tables back."""
        return {"jars": [path.name for path in self._jars], self._reader: importlib.metadata.version(self._reader)}

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """A folder for each part. Raises StackError."""
        return {part: self._made(part, self._place(run_id, part)) for part in parts}

    def _made(self, part: str, folder: Path) -> Resources:
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise StackError(
                f"cannot make the folder of {self._component} tables {folder}: {error.strerror}"
            ) from error
        return Resources(
            label=labelled(self._component, part),
            at=Tables(folder),
            placeholders={"path": str(folder), "jars": ",".join(map(str, self._jars))},
        )

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Remove the folders. An orphan may go on writing there; what it writes goes with the session's folder."""
        for part in names:
            shutil.rmtree(self._place(run_id, part), ignore_errors=True)

    def close(self) -> None:
        """Nothing is held."""

    def _place(self, run_id: str, part: str) -> Path:
        return self.folder / run_id / (part or PLAIN)


def installed(component: str, package: str) -> str:
    """The version of a package that reads the tables. Raises StackError where it is not there."""
    if importlib.util.find_spec(package) is None:
        cure = f"pip install 'onceproof[{component}]'"
        raise StackError(f"asked for {component}; there is no Python package {package}; {cure}")
    return importlib.metadata.version(package)
