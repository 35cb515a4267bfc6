"""The folders of runs in HDFS: one for each part."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from harness.components.hdfs.folder import HdfsFolder, soon
from harness.components.hdfs.webhdfs import WebHdfs
from harness.errors import StackError
from harness.resources import Resources, labelled

CHECKPOINT = "checkpoint"
"""The folder of a part that a run's checkpoint lies in, and the placeholder that stands for it."""


class Provides:
    """What every file system does for a run. `files` is how the harness asks it, `scheme` how a pipeline reaches it;
    `root` is the folder in it that holds the runs' folders, `scratch` one of the harness's own for copies."""

    files: WebHdfs
    scheme: str
    root = "/onceproof"
    scratch: Path | None = None
    listed_how = "over WebHDFS, again and again"
    shared = False

    def wait(self, within_s: float) -> None:
        """Return once something may have changed."""
        soon(within_s)

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """A folder for each part; the one that is asked for the checkpoint gives `{checkpoint}` too. Raises
        StackError."""
        return {part: self._made(self._folder(run_id, part), part, asked) for part, asked in parts.items()}

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Delete the folders. Raises StackError, once everything was tried."""
        with contextlib.ExitStack() as steps:
            for part in names:
                steps.callback(self._drop, run_id, part)

    def _drop(self, run_id: str, part: str) -> None:
        self._folder(run_id, part).delete("")

    def _made(self, folder: HdfsFolder, part: str, asked: Mapping[str, Any]) -> Resources:
        folder.make()
        there = {CHECKPOINT: f"{folder.url}/{CHECKPOINT}"} if asked.get(CHECKPOINT) else {}
        placeholders = {"url": self.scheme, "path": folder.url, **there}
        return Resources(
            label=labelled("hdfs", part), at=folder, placeholders=placeholders, bare=tuple(there), shared=self.shared
        )

    def _folder(self, run_id: str, part: str) -> HdfsFolder:
        wait: Callable[[float], None] = self.wait
        path = f"{self.root}/{run_id}/{part or 'files'}"
        return HdfsFolder(self.files, self.scheme, path, wait, scratch=self.scratch, listed_how=self.listed_how)


def version(files: WebHdfs) -> str:
    """Of the NameNode, e.g. `3.4.1`. Raises StackError."""
    said = files.jmx("NameNodeInfo")
    if not said:
        raise StackError(f"asked the NameNode at {files.address} for its version; it says none")
    return str(said["SoftwareVersion"])
