"""The fault `kill azure`: SIGKILL to the emulator, which is started again on the blobs that it left."""

from __future__ import annotations

from dataclasses import replace

from harness.faults.base.outage import KillServer
from harness.kinds import About


class KillAzure(KillServer):
    """What it has acknowledged is there again; of a request without an answer nobody knows what was done."""

    @property
    def about(self) -> About:
        """Who it is."""
        return replace(super().about, example="{when: {rows: 150}, do: kill azure, for: 3s}")


KIND = KillAzure("azure")
