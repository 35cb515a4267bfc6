"""How fast the pipeline gets on, so that a slow one is not called stalled."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

STALLED_S = 60.0
SLOWER = 3.0
"""A batch may take that much longer than any stretch between two commits that this run has already shown."""


class Pace:
    """Looked at again and again while records are on their way. `now` is a clock in seconds."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._since = now()
        self._committed = 0
        self._faults = 0
        self._longest_s = 0.0

    def look(self, *, committed: int, outstanding: bool, faults: int) -> None:
        """`committed` records lie behind the frontier, `outstanding` says that there are more, and `faults` were done
        so far: time counts from the last commit or, if that is later, from the last fault."""
        now, moved = self._now(), committed != self._committed
        if moved:
            self._longest_s = max(self._longest_s, now - self._since)
        if moved or faults != self._faults or not outstanding:
            self._since = now
        self._committed, self._faults = committed, faults

    def stalled(self) -> str:
        """Words for a stretch without a commit that is too long to be one slow batch; else empty."""
        idle_s = self._now() - self._since
        if idle_s <= max(STALLED_S, SLOWER * self._longest_s):
            return ""
        return (
            f"nothing was committed in the last {idle_s:.0f} s; the longest stretch before took {self._longest_s:.0f} s"
        )
