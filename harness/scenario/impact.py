"""What a fault does to the driver's attempt, for the harness and for the judge."""

from __future__ import annotations

from enum import StrEnum


class Impact(StrEnum):
    """What a fault does to the attempt of the driver that it strikes."""

    DRIVER_KILLED = "driver killed"
    DRIVER_STOPPED = "driver stopped"
    DRIVER_PAUSED = "driver paused"
    DRIVER_CUT_OFF = "driver cut off"
    EXECUTOR_KILLED = "executor killed"
    EXECUTORS_KILLED = "executors killed"
    SERVER_AWAY = "server away"
    """No process is known to do anything again, unless a driver ends: clients wait for it, or what they asked fails."""
    NONE = "none"


ENDS_DRIVER = (Impact.DRIVER_KILLED, Impact.DRIVER_STOPPED)
"""After these the attempt is over."""
ENDS_EXECUTOR = (Impact.EXECUTOR_KILLED, Impact.EXECUTORS_KILLED)
"""After these tasks are tried again."""
