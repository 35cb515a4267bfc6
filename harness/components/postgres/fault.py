"""The fault `kill postgres`: SIGKILL to the server, which is started again on the data that it left. What the pipeline
had open there is rolled back."""

from __future__ import annotations

from harness.faults.base.outage import KillServer

KIND = KillServer("postgres")
