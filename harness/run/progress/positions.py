"""Where a pipeline that keeps its offsets itself stood, over the whole run: looked at again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable

from harness.checkpoint import Offsets
from harness.errors import HarnessError
from harness.history import History, OffsetsSaved
from harness.snapshot import Position

LOOK_EVERY_S = 0.025


class Positions:
    """Keeps each place that `look` has shown, in a thread of its own between `start()` and `close()`."""

    def __init__(self, look: Callable[[], Offsets], history: History) -> None:
        self._look = look
        self._history = history
        self._looking = threading.Lock()
        self._stop = threading.Event()
        self._attempt = 0
        self._seen: list[Position] = []
        self._thread = threading.Thread(target=self._guarded, name="positions", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Look no more; returns when the thread is gone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def healthy(self) -> None:
        """Raise HarnessError if looking failed: from then on nothing was kept."""
        if isinstance(self.failure, HarnessError):
            raise self.failure
        if self.failure is not None:
            raise HarnessError(f"the pipeline's own position could not be followed: {self.failure!r}")

    def launched(self, attempt: int) -> Offsets:
        """An attempt is about to begin; returns where it would go on from."""
        with self._looking:
            self._attempt = attempt
            return self._keep(self._look())

    def seen(self) -> tuple[Position, ...]:
        """All that was kept: one at each launch, one after each move."""
        return tuple(self._seen)

    def moved(self, attempt: int) -> bool:
        """Return whether it was seen to move while that attempt was the newest."""
        return len(self._times(attempt)) > 1

    def _times(self, attempt: int) -> list[float]:
        return [each.at_s for each in self.seen() if each.attempt == attempt]

    def _guarded(self) -> None:
        try:
            while not self._stop.wait(LOOK_EVERY_S):
                # The look too: an older one must not be kept behind that of a launch.
                with self._looking:
                    now = self._look()
                    if not self._seen or now != self._seen[-1].next:
                        self._keep(now)
        except BaseException as failure:
            self.failure = failure

    def _keep(self, position: Offsets) -> Offsets:
        saved = dict(sorted(position.items()))
        at_s = round(self._history.write(OffsetsSaved(attempt=self._attempt, next=saved)).at_s, 3)
        self._seen.append(Position(attempt=self._attempt, at_s=at_s, next=saved))
        return position
