"""The fault `kill opensearch`: SIGKILL to the server, which is started again on the data that it left. What became of a
request without an answer is not known."""

from __future__ import annotations

from harness.faults.base.outage import KillServer

KIND = KillServer("opensearch", example="{when: {failpoint: half-indexed, batch: 2}, do: kill opensearch, for: 3s}")
