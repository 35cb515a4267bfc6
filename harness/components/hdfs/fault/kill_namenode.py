"""The fault `kill namenode`: SIGKILL to HDFS's NameNode, which is started again on its edit log."""

from __future__ import annotations

from harness.faults.base.outage import KillServer
from harness.scenario import Impact


class KillNameNode(KillServer):
    """What it has acknowledged is there again. Who asks it meanwhile fails: its client does not ask twice. Whether a
    task or a driver then asks again, only a driver's end says."""

    impact = Impact.SERVER_AWAY


KIND = KillNameNode("hdfs", daemon="namenode")
