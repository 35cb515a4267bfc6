"""The fault `kill minidfs`: SIGKILL to NameNode and DataNode at once, which are started again on their data."""

from __future__ import annotations

from harness.faults.base.outage import KillServer
from harness.scenario import Impact


class KillMiniDfs(KillServer):
    """What the NameNode has acknowledged is there again; who asks it meanwhile fails."""

    impact = Impact.SERVER_AWAY


KIND = KillMiniDfs("minidfs")
