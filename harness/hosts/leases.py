"""Addresses of a session's network: each is one container's alone until its run is over.

An engine that picks addresses itself gives a free one to whoever comes next, and one that is off the network for a
while has to come back at its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, ip_network

from harness.errors import StackError


class Leases:
    """The addresses of the first IPv4 range in `subnets`, such as `172.18.0.0/16`, without its first one, which is the
    gateway's. Several threads may ask."""

    def __init__(self, subnets: Sequence[str]) -> None:
        ranges = [each for each in map(ip_network, subnets) if isinstance(each, IPv4Network)]
        self._range = ranges[0] if ranges else None
        self._next = self._round()
        self._taken: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def take(self, run: str | None) -> str | None:
        """An address that nobody has, for a container of a run, or of the session (None). They are given in turn, so
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
