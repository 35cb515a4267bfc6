"""Feeds the pipeline: hands the records to the producer, in portions, at a rate or at the pipeline's own pace."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from harness.checkpoint import count
from harness.errors import HarnessError
from harness.journal import Journal
from harness.run.frontier import Frontier
from harness.workload.producer import Producer

PORTIONS = 6
AHEAD = 1
PATIENCE_S = 20.0
TICK_S = 0.05
CHUNK = 5000


class Feeder:
    """Sends in a thread of its own. Without a rate it stays one portion ahead of what the pipeline has planned: a fault
    always finds records on their way, and a slow start does not swallow the whole input in one batch. A pipeline that
    shows no progress is waited for `PATIENCE_S` with each portion."""

    def __init__(self, producer: Producer, frontier: Frontier, journal: Journal, rate_per_s: float | None) -> None:
        self._producer = producer
        self._frontier = frontier
        self._journal = journal
        self._rate = rate_per_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name="feeder", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more; returns when the thread is gone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(60.0)  # one portion on its way may take that long

    @property
    def done(self) -> bool:
        """True once every record was sent and answered, one way or another."""
        return self._producer.done

    @property
    def sent(self) -> int:
        """Records sent so far."""
        return self._producer.sent

    def healthy(self) -> None:
        """Raise HarnessError if sending failed."""
        if isinstance(self.failure, HarnessError):
            raise self.failure
        if self.failure is not None:
            raise HarnessError(f"the producer failed: {self.failure!r}")

    def _guarded(self) -> None:
        try:
            pace = self._paced if self._rate else self._portions
            pace()
        except BaseException as failure:
            self.failure = failure

    def _send(self, many: int) -> None:
        left = many
        while left > 0 and not self._producer.done and not self._stop.is_set():
            left -= self._producer.send(min(left, CHUNK))
            self._journal.write("sent", records=self._producer.sent, total=self._producer.total)

    def _portions(self) -> None:
        portion = max(1, -(-self._producer.total // PORTIONS))
        while not self._producer.done and not self._stop.is_set():
            self._send(portion)
            wanted = self._producer.sent - AHEAD * portion
            self._wait(lambda wanted=wanted: count(self._frontier.planned()) >= wanted)  # type: ignore[misc]

    def _wait(self, reached: Callable[[], bool]) -> None:
        end = monotonic() + PATIENCE_S
        while not reached() and monotonic() < end and not self._stop.wait(TICK_S):
            pass

    def _paced(self) -> None:
        began, rate = monotonic(), self._rate or 1.0
        while not self._producer.done and not self._stop.wait(TICK_S):
            due = int((monotonic() - began) * rate) + 1 - self._producer.sent
            self._send(due)
