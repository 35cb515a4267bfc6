"""Loopback ports that stay ours: bound as soon as they are chosen, until the session ends.

A reserved port is bound but never listened on. A server that sets SO_REUSEADDR (the JVM and Postgres do) may still
listen on it, also again after a restart; nobody else is given it meanwhile.
"""

from __future__ import annotations

import re
import socket

from harness.errors import StackError

LOOPBACK = "127.0.0.1"
HOST = re.compile(r"[\w.-]+")
"""A host by name or by IPv4 address."""


class Port:
    """One reserved port of the loopback interface. `wanted` 0 means any free one.

    Raises StackError when the wanted port is taken."""

    def __init__(self, wanted: int = 0, *, what: str = "a service") -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((LOOPBACK, wanted))
        except (OSError, OverflowError) as error:
            self._socket.close()
            raise StackError(
                f"port {wanted} was asked for {what} and cannot be had ({error}); free it or choose another"
            ) from error
        self.number: int = self._socket.getsockname()[1]

    def open(self) -> bool:
        """Whether somebody listens on it. Says nothing about who: ask for an identity before use."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.settimeout(1.0)
            return client.connect_ex((LOOPBACK, self.number)) == 0

    def release(self) -> None:
        """Give it back."""
        self._socket.close()

    def __str__(self) -> str:
        return f"{LOOPBACK}:{self.number}"
