"""The fault `crash application`: driver and executors die at once, as when a whole cluster loses power."""

from __future__ import annotations

from harness.faults.base import killing
from harness.kinds import About
from harness.stack import Means


class CrashApplication(killing.KillsDriver):
    """No process is left to write on."""

    about = About(
        name="crash application",
        summary="SIGKILL to the driver and to every executor at once",
        example="{when: {records: 300}, do: crash application}",
        options=killing.Victims,
    )
    needs = frozenset({Means.SIGNAL_DRIVER, Means.SIGNAL_EXECUTORS})


KIND = CrashApplication()
