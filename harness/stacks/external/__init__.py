"""The stack `external`: a cluster that is there already, named by its addresses.

stack   what runs it
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from harness.component import AtAddress
from harness.fields.shape import Shape
from harness.kinds import About
from harness.stack import Means, Stack
from harness.stacks.addresses import Where, unnamed


class External:
    """Only the drivers are ours to strike, and its other users are not to be disturbed by several runs at once."""

    about = About(
        name="external",
        summary="a cluster that is there already; only the driver is started, on this machine",
        example="onceproof run scenarios/proving --stack external --spark-master spark://HOST:PORT "
        "--at kafka=HOST:PORT --at postgres=URL",
        options=Shape,
    )
    means = frozenset({Means.SIGNAL_DRIVER, Means.RESTART_ENDED, Means.HOLD_OPERATIONS})
    has = AtAddress
    one_at_a_time = True
    at_addresses = True

    def open(self, logs: Path, *, needs: Collection[str], where: Where | None) -> Stack:
        """Return one of it, not yet up. Raises UsageError for an address that is missing, or is none."""
        from harness.stacks.external.stack import ExternalStack

        if where is None:
            raise unnamed(self.about.name)
        return ExternalStack(where, logs, needs=needs)


KIND = External()
