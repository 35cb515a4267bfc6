"""The folders of runs in HDFS: one for each part."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.components.hdfs.folder import HdfsFolder
from harness.components.hdfs.rpc import RPC
from harness.components.hdfs.webhdfs import WebHdfs
from harness.errors import StackError
from harness.remote import Wait
from harness.remote.parts import ProvidesFolders, soon
from harness.remote.relay.relays import RELAY, Relays
from harness.remote.relay.server import LOOPBACK
from harness.resources import Resources, labelled


class Provides(ProvidesFolders):
    """What every file system does for a run. `name` is that of its component; `files` is how the harness asks it,
    `scheme` how a pipeline reaches it; `root` is the folder in it that holds the runs' folders, `scratch` one of the
    harness's own for copies."""

    name = "hdfs"
    files: WebHdfs
    scheme: str
    root = "/onceproof"
    scratch: Path | None = None
    listed_how = "over WebHDFS, again and again"
    shared = False

    def __init__(self) -> None:
        self._relays = Relays("the NameNode", RPC)

    def watch(self) -> AbstractContextManager[Wait]:
        """A wait for changes, as a folder's `changes`."""
        return soon()

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """A folder for each part; the one that is asked for the checkpoint gives `{checkpoint}` too, and with one that
        is asked for a relay the pipeline reaches all of them through it. Raises StackError."""
        if any(asked.get(RELAY) for asked in parts.values()):
            server = urlsplit(self.scheme)
            assert server.hostname is not None and server.port is not None
            self._relays.start(run_id, server.hostname, server.port)
        return super().provide(run_id, parts)

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Delete the folders. Raises StackError, once everything was tried."""
        self._relays.end(run_id)
        super().drop(run_id, names)

    def close(self) -> None:
        """End the relays and close the connections to it."""
        self._relays.close()
        self.files.close()

    def _made(self, part: str, folder: HdfsFolder, there: Mapping[str, str]) -> Resources:
        folder.make()
        placeholders = {"url": folder.scheme, "path": folder.url, **there}
        return Resources(
            label=labelled(self.name, part), at=folder, placeholders=placeholders, bare=tuple(there), shared=self.shared
        )

    def _folder(self, run_id: str, part: str) -> HdfsFolder:
        relay = self._relays.of(run_id)
        return HdfsFolder(
            self.files,
            self.scheme if relay is None else f"hdfs://{LOOPBACK}:{relay.port}",
            f"{self.root}/{run_id}/{part or 'files'}",
            self.watch,
            scratch=self.scratch,
            listed_how=self.listed_how,
            relay=relay,
        )


def version(files: WebHdfs) -> str:
    """Of the NameNode, e.g. `3.4.1`. Raises StackError."""
    said = files.jmx("NameNodeInfo")
    if not said:
        raise StackError(f"asked the NameNode at {files.address} for its version; it says none")
    return str(said["SoftwareVersion"])
