"""The fault `kill kafka`: SIGKILL to the broker, which is started again on the data that it left."""

from __future__ import annotations

from harness.faults.base.outage import KillServer


class KillKafka(KillServer):
    """Source and sink alike: who reads waits, who has sent does not know what was taken."""


KIND = KillKafka("kafka")
