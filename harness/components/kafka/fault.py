"""The fault `kill kafka`: SIGKILL to the broker, which is started again on the data that it left. It is source and sink
alike: who reads waits, who has sent does not know what was taken."""

from __future__ import annotations

from harness.faults.base.outage import KillServer
from harness.scenario import Impact

KIND = KillServer(
    "kafka", impact=Impact.SERVER_AWAY, example="{when: {point: batch-planned, batch: 3}, do: kill kafka, for: 3s}"
)
