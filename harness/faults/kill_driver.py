"""The fault `kill driver`: SIGKILL to the driver's whole tree, or to its Python program or its JVM alone."""

from __future__ import annotations

from harness.faults.base import killing
from harness.kinds import About


class KillDriver(killing.KillsDriver):
    """What the kernel's out-of-memory killer does, or a lost node."""

    about = About(
        name="kill driver",
        summary="SIGKILL to the driver: its whole tree, its Python program or its JVM",
        example="{when: {point: sink-committed, batch: 3}, do: kill driver}",
        options=killing.Victims,
    )


KIND = KillDriver()
