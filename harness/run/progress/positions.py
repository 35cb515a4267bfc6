"""The positions of a pipeline that manages its own offsets, over the whole run: read again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable

from harness.checkpoint import Offsets
from harness.errors import HarnessError
from harness.history import History, OffsetsSaved
from harness.snapshot import Position

POLL_S = 0.025


class Positions:
    """Records each position that `read` returns, in a separate thread between `start()` and `close()`."""

    def __init__(self, read: Callable[[], Offsets], history: History) -> None:
        self._read = read
        self._history = history
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._attempt = 0
        self._seen: list[Position] = []
        self._thread = threading.Thread(target=self._guarded, name="positions", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Read no more; returns when the thread is gone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def healthy(self) -> None:
        """Raise HarnessError if reading failed: from then on nothing was kept."""
        if isinstance(self.failure, HarnessError):
            raise self.failure
        if self.failure is not None:
            raise HarnessError(f"the pipeline's own position could not be followed: {self.failure!r}")

    def launched(self, attempt: int) -> Offsets:
        """Note that an attempt is about to begin, and return the position from which it would go on."""
        with self._lock:
            self._attempt = attempt
            return self._keep(self._read())

    def seen(self) -> tuple[Position, ...]:
        """Return all that was kept: one at each launch, one after each move."""
        return tuple(self._seen)

    def moved(self, attempt: int) -> bool:
        """Return whether it was seen to move while that attempt was the newest."""
        return sum(each.attempt == attempt for each in self.seen()) > 1

    def _guarded(self) -> None:
        try:
            while not self._stop.wait(POLL_S):
                # The read too: an older position must not be recorded after that of a launch.
                with self._lock:
                    now = self._read()
                    if not self._seen or now != self._seen[-1].next:
                        self._keep(now)
        except BaseException as failure:
            self.failure = failure

    def _keep(self, position: Offsets) -> Offsets:
        saved = dict(sorted(position.items()))
        at_s = round(self._history.write(OffsetsSaved(attempt=self._attempt, next=saved)).at_s, 3)
        self._seen.append(Position(attempt=self._attempt, at_s=at_s, next=saved))
        return position
