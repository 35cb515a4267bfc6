"""The fault `kill minidfs`: SIGKILL to NameNode and DataNode at once, which are started again on their data. A request
meanwhile fails."""

from __future__ import annotations

from harness.faults.base.outage import KillServer
from harness.scenario import Impact

KIND = KillServer("minidfs", impact=Impact.SERVER_AWAY)
