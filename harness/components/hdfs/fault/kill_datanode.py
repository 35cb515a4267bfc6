"""The fault `kill datanode`: SIGKILL to HDFS's one DataNode, which is started again on its blocks."""

from __future__ import annotations

from harness.faults.base.outage import KillServer


class KillDataNode(KillServer):
    """Meanwhile no file can be read or written, and names can be listed and renamed all the same."""


KIND = KillDataNode("hdfs", daemon="datanode")
