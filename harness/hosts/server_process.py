"""A server that is a child process of ours: how it is stopped, and what is asked of it while it runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.hosts import service
from harness.hosts.ports import Port
from harness.session.session import Session


class ServerProcess:
    """What such servers have in common; each starts in its own way, and leaves its process in `_process`."""

    name: str
    log: Path
    _session: Session
    _port: Port
    _process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port.number

    def stop(self, *, grace_s: float = 0.0) -> None:
        """End the server; its data stays, so that `start` brings it back. Until then its absence is no error."""
        process, self._process = self._process, None
        if process is not None:
            self._session.end(process, grace_s=grace_s)

    def check(self) -> None:
        """Raise StackError if it is dead."""
        if self._process is not None:
            service.check(self.name, self._process, self.log)

    def close(self) -> None:
        """Give the port back; ending the process is the session's work."""
        self._port.release()
