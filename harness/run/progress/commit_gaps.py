"""How often the queries of a program commit, by the history, and which of them still have something in flight.

This decides how long a sink must stay unchanged before nothing more can come. The last commit of the query that reads
the source is not enough if another query, with another commit interval, passes its rows on.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.checkpoint import listing
from harness.history import AttemptStarted, BatchCommitted, Line, OfBatch
from harness.snapshot import QueryState

DEEPEST = 6
"""As deep below the run's folder as checkpoints are watched for."""


class Rhythm:
    """The gaps between commits, by query and attempt. Listens to a history; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempt = 0
        self._touched: dict[str, int] = {}
        self._launched: dict[int, float] = {}
        self._start_s = 0.0
        self._last: dict[tuple[str, int], float] = {}
        self._gaps: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._position = 0

    def heard(self, line: Line) -> None:
        """One more line of the history."""
        event = line.event
        if isinstance(event, AttemptStarted):
            self._attempt = event.attempt
            with self._lock:
                self._launched[self._attempt] = line.at_s
        if isinstance(event, OfBatch):
            with self._lock:
                self._touched[event.query] = max(event.attempt, self._touched.get(event.query, 0))
        if isinstance(event, BatchCommitted):
            self.committed(event.query, event.attempt, line.at_s)

    def committed(self, query: str, attempt: int, at_s: float) -> None:
        """A query has committed a batch."""
        with self._lock:
            before = self._last.get((query, attempt))
            self._last[query, attempt] = at_s
            if before is not None:
                self._gaps[query][attempt].append(at_s - before)
            elif attempt in self._launched:
                self._start_s = max(self._start_s, at_s - self._launched[attempt])

    def position_read(self, position: int, attempt: int, at_s: float) -> None:
        """A pipeline that manages its own offsets was seen to stand at `position`."""
        moved, self._position = position != self._position, position
        if moved:
            self.committed("", attempt, at_s)

    def gap_s(self) -> float:
        """Return the longest time that a query went without a commit within one attempt: between two of them, or from
        the launch to its first one. An attempt after a fault has to start too."""
        with self._lock:
            return max(self._start_s, *(gap for gaps in self._gaps.values() for gap in _all(gaps)), 0.0)

    def steady_s(self) -> float:
        """Return the same without the first gap of each attempt, where a query has shown others: it holds the start of
        workers and compilers, and with a trigger interval the odd time up to its first tick."""
        with self._lock:
            return max((max(_steady(gaps) or _all(gaps)) for gaps in self._gaps.values() if _all(gaps)), default=0.0)

    def shown(self, query: str) -> bool:
        """Return whether the query has committed often enough in one attempt to tell how often it does."""
        with self._lock:
            return bool(_steady(self._gaps.get(query, {})))

    def in_flight(self, states: Iterable[QueryState], *, silent: bool) -> dict[str, int]:
        """Return by query, the batch that is planned and not committed. A query that the present attempt has not
        touched is left out, unless it reads what another one wrote. Then it may still come to that batch again, if the
        attempt was not `silent` for too long."""
        out = {}
        for state in states:
            newest = max(state.offsets, default=-1)
            here = self._touched.get(state.checkpoint, 0) == self._attempt
            if newest > max(state.commits, default=-1) and (here or not (state.ours or silent)):
                out[state.checkpoint] = newest
        return out

    def unshown(self, states: Iterable[QueryState]) -> bool:
        """Return whether there is a query that reads what another one wrote, and has not shown how often it commits."""
        return any(state.offsets and not state.ours and not self.shown(state.checkpoint) for state in states)


def _all(gaps: Mapping[int, list[float]]) -> list[float]:
    return [gap for some in gaps.values() for gap in some]


def _steady(gaps: Mapping[int, list[float]]) -> list[float]:
    return [gap for some in gaps.values() for gap in some[1:]]


def unplanned(root: Path) -> bool:
    """Return whether there is a checkpoint below `root` of a query that has begun and planned nothing. One that reads
    the source plans a first batch at once, even an empty one."""
    for name, folders, _ in os.walk(root):
        path = Path(name)
        if {"offsets", "commits"} <= set(folders):
            # One that was deleted since is none.
            if not listing(path)["offsets"] and (path / "offsets").is_dir():
                return True
            folders.clear()
        elif len(path.relative_to(root).parts) >= DEEPEST:
            folders.clear()
    return False
