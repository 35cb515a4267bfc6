"""The fault `kill eventhubs`: SIGKILL to the broker behind the endpoint, which is started again on the data that it
left, with the same key."""

from __future__ import annotations

from harness.faults.base.outage import KillServer
from harness.scenario import Impact

KIND = KillServer(
    "eventhubs",
    impact=Impact.SERVER_AWAY,
    example="{when: {point: batch-planned, batch: 3}, do: kill eventhubs, for: 3s}",
)
