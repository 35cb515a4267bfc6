"""The fault `kill s3`: SIGKILL to the server, which is started again on the objects that it left. What became of a
request without an answer is not known."""

from __future__ import annotations

from harness.faults.base.outage import KillServer
from harness.scenario import Impact

KIND = KillServer("s3", impact=Impact.SERVER_AWAY)
