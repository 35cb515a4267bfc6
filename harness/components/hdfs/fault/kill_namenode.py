"""The fault `kill namenode`: SIGKILL to HDFS's NameNode, which is started again on its edit log."""

from __future__ import annotations

from harness.faults.base.outage import KillServer
from harness.scenario import Impact


class KillNameNode(KillServer):
    """What it has acknowledged is there again; who asks it meanwhile waits, or fails."""

    impact = Impact.SERVER_AWAY


KIND = KillNameNode("hdfs", daemon="namenode")
