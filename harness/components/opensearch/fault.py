"""The fault `kill opensearch`: SIGKILL to the server, which is started again on the data that it left."""

from __future__ import annotations

from dataclasses import replace

from harness.faults.base.outage import KillServer
from harness.kinds import About


class KillOpenSearch(KillServer):
    """What it has acknowledged is there again; what became of a request without an answer is not known."""

    @property
    def about(self) -> About:
        """Who it is."""
        return replace(
            super().about, example="{when: {failpoint: half-indexed, batch: 2}, do: kill opensearch, for: 3s}"
        )


KIND = KillOpenSearch("opensearch")
