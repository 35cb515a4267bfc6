"""The fault `kill s3`: SIGKILL to the server, which is started again on the objects that it left."""

from __future__ import annotations

from dataclasses import replace

from harness.faults.base.outage import KillServer
from harness.kinds import About
from harness.scenario import Impact


class KillS3(KillServer):
    """What it has acknowledged is there again; what became of a request without an answer is not known."""

    impact = Impact.SERVER_AWAY

    @property
    def about(self) -> About:
        """Who it is."""
        return replace(super().about, example="{when: {rows: 150}, do: kill s3, for: 3s}")


KIND = KillS3("s3")
