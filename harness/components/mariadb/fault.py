"""The fault `kill mariadb`: SIGKILL to the server, which is started again on the data that it left."""

from __future__ import annotations

from harness.faults.base.outage import KillServer


class KillMariaDB(KillServer):
    """Whatever the pipeline had open there is rolled back."""


KIND = KillMariaDB("mariadb")
