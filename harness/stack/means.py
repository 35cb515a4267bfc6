"""What a stack can do to the processes of a run, known before one is started."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Means(StrEnum):
    """One thing that a fault may need of a stack."""

    SIGNAL_DRIVER = "signal the driver"
    SIGNAL_EXECUTORS = "signal the executors"
    CUT_NETWORK = "take a process off the network"


MEANS: Mapping[str, frozenset[Means]] = {
    # The processes of one machine have one network.
    "processes": frozenset({Means.SIGNAL_DRIVER, Means.SIGNAL_EXECUTORS}),
    "containers": frozenset(Means),
    "external": frozenset({Means.SIGNAL_DRIVER}),
}
"""By the name of each stack, as `--stack` takes it."""
