"""The fault `kill namenode`: SIGKILL to HDFS's NameNode, which is started again on its edit log. A request meanwhile
fails: its client does not ask twice. Whether a task or a driver then asks again, only a driver's end says."""

from __future__ import annotations

from harness.faults.base.outage import KillServer
from harness.scenario import Impact

KIND = KillServer("hdfs", daemon="namenode", impact=Impact.SERVER_AWAY)
