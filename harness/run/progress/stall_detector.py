"""When a pipeline that leaves records uncommitted is stalled: a slow one is not."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from harness.snapshot import ENDED_WELL, GAVE_UP, Stalled

STALLED_S = 60.0
SLOWER = 3.0
"""A batch may take that much longer than the longest time between two commits that this run has already shown."""


class StallDetector:
    """Read again and again while records are on their way. `longest_s` gives the longest time that a query went
    without a commit, whatever it reads; `now` is a clock in seconds."""

    def __init__(
        self,
        *,
        interval_s: float | None = None,
        longest_s: Callable[[], float] = lambda: 0.0,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._now = now
        self._interval_s = interval_s
        self._of_queries_s = longest_s
        self._since = self._observed_s = now()
        self._committed = 0
        self._faults = 0
        self._longest_s = 0.0

    def observe(self, *, committed: int, outstanding: bool, faults: int, alive: bool = True) -> None:
        """Note that the pipeline has `committed` records and whether more are `outstanding`, after so many `faults`.
        Time counts from the last commit or, if that is later, from the last fault. It does not count while no driver
        is `alive` and the policy waits before a restart: nothing could be committed."""
        now, moved = self._now(), committed != self._committed
        if moved:
            self._longest_s = max(self._longest_s, now - self._since)
        if moved or faults != self._faults or not outstanding:
            self._since = now
        elif not alive:
            self._since += now - self._observed_s
        self._committed, self._faults, self._observed_s = committed, faults, now

    def stalled(self) -> Stalled | None:
        """Return a stall if no commit came for longer than a slow batch or a trigger interval takes; otherwise None."""
        idle_s, longest_s = self._now() - self._since, self._longest()
        if idle_s <= max(STALLED_S, SLOWER * longest_s, SLOWER * (self._interval_s or 0.0)):
            return None
        before = f"the longest time without a commit before was {longest_s:.0f} s"
        words = f"nothing was committed in the last {idle_s:.0f} s; {before}"
        return self._stall("idle", words)

    def gave_up(self, words: str, *, well: bool) -> Stalled:
        """Return the stall of a driver that the policy does not restart any more; `well`: because its program ended
        well."""
        return self._stall(ENDED_WELL if well else GAVE_UP, words)

    def _longest(self) -> float:
        return max(self._longest_s, self._of_queries_s())

    def _stall(self, kind: str, words: str) -> Stalled:
        return Stalled(
            kind=kind,
            idle_s=round(self._now() - self._since, 3),
            longest_gap_s=round(self._longest(), 3),
            interval_s=self._interval_s,
            words=words,
        )
