"""The run's one story: an append-only file of JSON lines, in the order in which things were seen.

Every line has `n` (a sequence number, the order), `at_s` (seconds since the run began, monotonic clock), `what`
and whatever that event carries. Live progress in the terminal subscribes to the same events.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

Listener = Callable[[Mapping[str, Any]], None]


class Journal:
    """Writes events; safe to call from several threads."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("a", encoding="utf-8") if path else None
        self._lock = threading.Lock()
        self._began = monotonic()
        self._n = 0
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every later event."""
        self._listeners.append(listener)

    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return monotonic() - self._began

    def write(self, what: str, **fields: Any) -> dict[str, Any]:
        """Append one event and return it. Raises OSError when the disk refuses."""
        with self._lock:
            event = {"n": self._n, "at_s": round(self.elapsed_s(), 4), "what": what, **fields}
            self._n += 1
            if self._file is not None:
                self._file.write(json.dumps(event, default=str) + "\n")
                self._file.flush()
        for listener in self._listeners:
            listener(event)
        return event

    def close(self) -> None:
        """Close the file; later events reach only the listeners."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a journal; a line torn by a crash ends it."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                return
