"""HDFS, Hadoop's file system: each part of a run is a folder in it, which may hold the checkpoint, files that the
pipeline reads, and files that it writes.

process      a NameNode and a DataNode as child processes
address      one that is there already
webhdfs      asks a NameNode and DataNodes over HTTP
folder       a run's own folder, as the harness reads and writes it
run_folders  one for each part of a run
fault        NameNode or DataNode killed, safe mode
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Addressed, MachineCheck, Server, Started, server_check
from harness.fields.shape import Shape
from harness.kinds import About
from harness.remote.parts import CheckpointInPart

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost


class HdfsComponent(CheckpointInPart):
    """One file system."""

    about = About(
        name="hdfs",
        summary="HDFS, of one NameNode and one DataNode; a run has its own folder, which may hold its checkpoint",
        example='args: [--into, "{hdfs.path}/payments"]',
        options=Shape,
    )
    gives = ("url", "path")
    bare = ()
    by_placeholder = True
    on_demand = True

    @property
    def machine_checks(self) -> tuple[MachineCheck, ...]:
        """NameNode and DataNode; YARN's daemons are of the same jars."""
        return (server_check("hdfs and yarn", "Hadoop's minicluster 3.4", _server),)

    def as_processes(self, host: ProcessHost) -> Started:
        """From the jars of Hadoop's minicluster."""
        from harness.components.hdfs.process import Hdfs

        return Hdfs(host.session, host.java, logs=host.logs)

    def at(self, address: str) -> Addressed:
        """`hdfs://HOST:PORT?http=HOST:PORT`."""
        from harness.components.hdfs.address import HdfsThere

        return HdfsThere(address)

    def borrowed(self, text: str) -> Server:
        """Of another process of ours."""
        from harness.components.hdfs.address import HdfsThere

        return HdfsThere(text, ours=True)


def _server() -> str:
    from harness.machine import jars

    return jars.there("hadoop")


KIND = HdfsComponent()
