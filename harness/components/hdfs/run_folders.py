"""The folders of runs in HDFS: one for each part."""

from __future__ import annotations

from harness.components.hdfs.folder import HdfsFolder
from harness.components.hdfs.webhdfs import WebHdfs
from harness.errors import StackError
from harness.remote.parts import ProvidesFolders
from harness.resources import Resources, labelled


class Provides(ProvidesFolders):
    """What every file system does for a run. `name` is that of its component; `files` is how the harness asks it,
    `scheme` how a pipeline reaches it; `root` is the folder in it that holds the runs' folders."""

    name = "hdfs"
    files: WebHdfs
    scheme: str
    root = "/onceproof"

    def close(self) -> None:
        """Close the connections to it."""
        self.files.close()

    def _made(self, part: str, folder: HdfsFolder) -> Resources:
        folder.make()
        placeholders = {"url": folder.scheme, "path": folder.url}
        return Resources(label=labelled(self.name, part), at=folder, placeholders=placeholders)

    def _folder(self, run_id: str, part: str) -> HdfsFolder:
        path = f"{self.root}/{run_id}/{part or 'files'}"
        return HdfsFolder(self.files, self.scheme, path, scratch=self.scratch)


def version(files: WebHdfs) -> str:
    """Of the NameNode, e.g. `3.4.1`. Raises StackError."""
    info = files.jmx("NameNodeInfo")
    if not info:
        raise StackError(f"asked the NameNode at {files.address} for its version; it says none")
    return str(info["SoftwareVersion"])
