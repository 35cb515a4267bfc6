"""Ports and addresses that stay ours. A loopback port is bound as soon as it is chosen, until the session ends; an
address of a session's network is one container's until its run is over.

A reserved port is bound but never listened on. A server that sets SO_REUSEADDR (the JVM and Postgres do) may still
listen on it, also again after a restart; no other process is given it meanwhile.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, ip_network

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
        """Return whether a process listens on it. Says nothing about who: ask for an identity before use."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.settimeout(1.0)
            return client.connect_ex((LOOPBACK, self.number)) == 0

    def release(self) -> None:
        """Give it back."""
        self._socket.close()

    def __str__(self) -> str:
        return f"{LOOPBACK}:{self.number}"


class Leases:
    """The addresses of the first IPv4 range in `subnets`, such as `172.18.0.0/16`, without its first one, which is the
    gateway's. Several threads may ask.

    An engine that picks addresses itself gives a free one to the next that asks. But a container that is off the
    network for a while has to come back at its own."""

    def __init__(self, subnets: Sequence[str]) -> None:
        ranges = [each for each in map(ip_network, subnets) if isinstance(each, IPv4Network)]
        self._range = ranges[0] if ranges else None
        self._next = self._round()
        self._taken: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def take(self, run: str | None) -> str | None:
        """Return a free address, for a container of a run, or of the session (None). They are given in turn, so
        one that was given back is not the next. None where the network has no IPv4. Raises StackError when all are
        taken."""
        if self._range is None:
            return None
        with self._lock:
            for _ in range(self._range.num_addresses):
                address = next(self._next)
                if address not in self._taken:
                    self._taken[address] = run
                    return address
        raise StackError(f"asked for an address in {self._range}; all {len(self._taken)} are taken")

    def free(self, run: str) -> None:
        """Those of a run whose containers are gone."""
        with self._lock:
            self._taken = {address: whose for address, whose in self._taken.items() if whose != run}

    def _round(self) -> Iterator[str]:
        """Each address in turn, for ever: a range may be too large to be listed."""
        while self._range is not None:
            hosts = self._range.hosts()
            next(hosts)
            yield from map(str, hosts)
