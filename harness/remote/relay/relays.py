"""The relays of a server's runs: each run that asks for one has its own."""

from __future__ import annotations

import contextlib
import threading

from harness.remote.relay.server import Relay

RELAY = "relay"
"""What a part is asked for whose requests are to be held."""


class Relays:
    """In front of one server."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._known: dict[str, Relay] = {}
        self._lock = threading.Lock()

    def start(self, run_id: str, host: str, port: int) -> None:
        """One for a run. Raises StackError."""
        relay = Relay(host, port, what=self._what)
        relay.start()
        with self._lock:
            self._known[run_id] = relay

    def of(self, run_id: str) -> Relay | None:
        """That of a run, if it has one."""
        with self._lock:
            return self._known.get(run_id)

    def end(self, run_id: str) -> None:
        """Silent about a run that has none."""
        with self._lock:
            relay = self._known.pop(run_id, None)
        if relay is not None:
            relay.close()

    def check(self) -> None:
        """Raise StackError if one has failed."""
        with self._lock:
            known = list(self._known.values())
        for relay in known:
            relay.check()

    def close(self) -> None:
        """End them all."""
        with self._lock:
            known, self._known = list(self._known.values()), {}
        with contextlib.ExitStack() as steps:
            for relay in known:
                steps.callback(relay.close)
