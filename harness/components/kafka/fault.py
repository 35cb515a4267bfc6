"""The fault `kill kafka`: SIGKILL to the broker, which is started again on the data that it left."""

from __future__ import annotations

from dataclasses import replace

from harness.faults.base.outage import KillServer
from harness.kinds import About
from harness.scenario import Impact


class KillKafka(KillServer):
    """Source and sink alike: who reads waits, who has sent does not know what was taken."""

    impact = Impact.SERVER_AWAY

    @property
    def about(self) -> About:
        """Who it is."""
        return replace(super().about, example="{when: {point: batch-planned, batch: 3}, do: kill kafka, for: 3s}")


KIND = KillKafka("kafka")
