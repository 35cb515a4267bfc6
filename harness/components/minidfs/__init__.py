"""HDFS in one JVM, NameNode and DataNode together, as Hadoop's MiniDFSCluster has them: for small suites.

process   the JVM
Launcher  what runs in it
fault     the JVM killed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Server, Started
from harness.fields.shape import Shape
from harness.kinds import About
from harness.remote.parts import CheckpointInPart

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost


class MiniDfsComponent(CheckpointInPart):
    """One file system."""

    about = About(
        name="minidfs",
        summary="HDFS in a single JVM, for small suites; a run has its own folder, which may hold its checkpoint",
        example="checkpoint: minidfs",
        options=Shape,
    )
    gives = ("url", "path")
    bare = ()
    by_placeholder = True
    on_demand = True
    substitutes = "hdfs"
    apart = "runs NameNode and DataNode in one process, which no fault takes apart"

    def as_processes(self, host: ProcessHost) -> Started:
        """From the jars of Hadoop's minicluster."""
        from harness.components.minidfs.process import MiniDfs

        return MiniDfs(host.session, host.java, logs=host.logs)

    def borrowed(self, text: str) -> Server:
        """Of another process of ours."""
        from harness.components.minidfs.process import MiniDfsThere

        return MiniDfsThere(text, ours=True)


KIND = MiniDfsComponent()
