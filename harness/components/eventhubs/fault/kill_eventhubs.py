"""The fault `kill eventhubs`: SIGKILL to the broker behind the endpoint, which is started again on the data that it
left, with the same key."""

from __future__ import annotations

from dataclasses import replace

from harness.faults.base.outage import KillServer
from harness.kinds import About
from harness.scenario import Impact


class KillEventHubs(KillServer):
    """Source and sink alike: who reads waits, who has sent does not know what was taken."""

    impact = Impact.SERVER_AWAY

    @property
    def about(self) -> About:
        """Who it is."""
        return replace(super().about, example="{when: {point: batch-planned, batch: 3}, do: kill eventhubs, for: 3s}")


KIND = KillEventHubs("eventhubs")
