"""Folders for the tables of runs, of a table format that is a library in driver and executors.

Nothing runs here. The format's jars come from Maven Central, are pinned, and reach a program by a placeholder, as a
user's own program names them under `spark.jars`. Programs that do not ask for them do not get them.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.machine import jars
from harness.machine.java import Java
from harness.session.part_folders import RunFolders
from harness.session.session import Session


class TableFolders(RunFolders):
    """The folders of all runs of a session. `reader` is the Python package that reads the component's tables back."""

    def __init__(self, session: Session, java: Java, *, component: str, reader: str) -> None:
        super().__init__(session.folder / component, component=component, plain="tables")
        self._java, self._reader = java, reader
        self._jars: tuple[Path, ...] = ()

    def start(self) -> None:
        """Find the jars, or fetch them, and make the folder. Raises StackError."""
        self._jars = jars.fetched(f"spark-{self._component}", self._java)
        super().start()

    def describe(self) -> Mapping[str, Any]:
        """Return the jars, and what reads the tables back."""
        return {"jars": [path.name for path in self._jars], self._reader: importlib.metadata.version(self._reader)}

    def placeholders(self, folder: Path) -> dict[str, str]:
        """Return the jars too."""
        return {**super().placeholders(folder), "jars": ",".join(map(str, self._jars))}
