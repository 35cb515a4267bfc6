"""Sends lines to the newest reader, each once. What a reader had received when it died is gone with it."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import HarnessError
from harness.hosts.ports import LOOPBACK
from harness.sources.lines import Line, text

READ_S = 30
"""How long a reader may take none of what is sent to it."""
POLL_S = 0.05
CLOSE_S = 5.0


@dataclass(frozen=True)
class Connection:
    """One reader. `since_s` is when it was accepted, in seconds since 1970, `base` how many lines had been sent to
    those before it."""

    socket: socket.socket
    since_s: float
    base: int

    def open(self) -> bool:
        """Return whether the reader is still there, as far as it says."""
        try:
            return self.socket.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False


class LineServer:
    """One port of a run. Thread-safe."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._connections: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.crowded = False
        """A reader connected while another one was there: it is not known which of them a query is."""
        self._listener = socket.create_server((LOOPBACK, 0))
        self._listener.settimeout(POLL_S)
        self._thread = threading.Thread(target=self._accept, name="lines", daemon=True)
        self._thread.start()

    @property
    def placeholders(self) -> Mapping[str, str]:
        """Where it listens."""
        return {"host": LOOPBACK, "port": str(self._listener.getsockname()[1])}

    def send(self, value: bytes, *, within_s: float) -> int | None:
        """Send a line to the newest reader; how many were sent before it. None if there was no reader in that time:
        then no byte of it was taken. Raises HarnessError for a reader that does not read."""
        deadline = time.monotonic() + within_s
        while not self._closed.is_set():
            with self._lock:
                if self._connections and self._connections[-1].open() and self._sent(value):
                    return len(self._lines) - 1
            if time.monotonic() >= deadline:
                return None
            self._closed.wait(POLL_S)
        return None

    def lines(self) -> list[Line]:
        """Return all that was sent, on whichever connection."""
        return list(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def connections(self) -> list[Connection]:
        """Return all that there have been, in order."""
        return list(self._connections)

    def alive(self) -> bool:
        """Return whether it still listens."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Hang up."""
        self._closed.set()
        self._thread.join(CLOSE_S)
        self._listener.close()
        for connection in self._connections:
            connection.socket.close()

    def _sent(self, value: bytes) -> bool:
        # Noted first: the reader may have passed it to Spark before the call returns.
        self._lines.append(Line(value, int(time.time() * 1000)))
        try:
            self._connections[-1].socket.sendall(text([value]))
        except BlockingIOError as late:
            raise HarnessError(f"sent a line on the socket; the driver read nothing for {READ_S} s") from late
        except OSError:
            # The reader is gone, and a part of a line with it.
            self._lines.pop()
            return False
        return True

    def _accept(self) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(TimeoutError):
                found, _ = self._listener.accept()
                # The kernel's limit: Python's own would also have it wait where it only reads (`open`).
                found.setblocking(True)
                found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", READ_S, 0))
                with self._lock:
                    self.crowded = self.crowded or any(each.open() for each in self._connections)
                    self._connections.append(Connection(found, time.time(), len(self._lines)))
