"""The fault `kill datanode`: SIGKILL to HDFS's one DataNode, which is started again on its blocks. Meanwhile no file
can be read or written, and names can be listed and renamed all the same."""

from __future__ import annotations

from harness.faults.base.outage import KillServer

KIND = KillServer("hdfs", daemon="datanode")
