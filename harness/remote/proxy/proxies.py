"""The proxies of a server's runs: each run that asks for one has its own."""

from __future__ import annotations

import contextlib
import threading

from harness.remote.proxy.server import Proxy

PROXY = "proxy"
"""What a part is asked for whose requests are to be held."""


class Proxies:
    """In front of one server."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._known: dict[str, Proxy] = {}
        self._lock = threading.Lock()

    def start(self, run_id: str, host: str, port: int) -> None:
        """One for a run. Raises StackError."""
        proxy = Proxy(host, port, what=self._what)
        proxy.start()
        with self._lock:
            self._known[run_id] = proxy

    def of(self, run_id: str) -> Proxy | None:
        """Return that of a run, if it has one."""
        with self._lock:
            return self._known.get(run_id)

    def end(self, run_id: str) -> None:
        """Silent about a run that has none."""
        with self._lock:
            proxy = self._known.pop(run_id, None)
        if proxy is not None:
            proxy.close()

    def check(self) -> None:
        """Raise StackError if one has failed."""
        with self._lock:
            known = list(self._known.values())
        for proxy in known:
            proxy.check()

    def close(self) -> None:
        """End them all."""
        with self._lock:
            known, self._known = list(self._known.values()), {}
        with contextlib.ExitStack() as steps:
            for proxy in known:
                steps.callback(proxy.close)
