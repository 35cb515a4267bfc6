"""Kafka that is there already, at an address."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from kafka.errors import KafkaError

from harness.components.kafka.access import Access, Address, parsed
from harness.components.kafka.run_topic import Provides
from harness.components.kafka.topics import Topics
from harness.errors import StackError, UsageError
from harness.hosts.ports import HOST

ANSWER_S = 10.0


class KafkaThere(Provides):
    """A cluster that is not ours."""

    shared = True

    def __init__(self, address: str) -> None:
        self._at(parsed(address))

    def _at(self, there: Address) -> None:
        self.inside, self.topics = there, Topics(there)
        if isinstance(there, Access):
            self.address, self.plain = there.address(), there.address(plain=True)
            self.secrets = (there.password,) if there.password else ()
        else:
            self.address = self.plain = there

    def describe(self) -> Mapping[str, Any]:
        """Return where it is, and which it is."""
        # The client would knock for seconds before it says so.
        reasons = [_silent(place) for place in str(self.inside).split(",")]
        if all(reasons):
            raise StackError(f"asked for Kafka at {self.plain}; it does not answer: {reasons[0]}")
        try:
            return {"at": self.plain, "cluster_id": str(self.topics.cluster()["cluster_id"])}
        except KafkaError as error:
            # A broker closes the connection of a login that it refuses, and the client only says that it is closed.
            login = isinstance(self.inside, Access)
            cure = ". Is the login right, and the certificate one that is trusted here (ca)?" if login else ""
            raise StackError(f"asked for Kafka at {self.plain}; it does not answer: {error}{cure}") from error

    def close(self) -> None:
        """Close our connection."""
        self.topics.close()


def _silent(place: str) -> str:
    """Return why no server answers at `host:port`; empty if one listens. Raises UsageError for no such thing."""
    host, _, port = place.strip().rpartition(":")
    if not HOST.fullmatch(host) or not port.isdigit():
        seen = "what was given has an @" if "@" in place else f"not {place!r}"
        raise UsageError(f"--at kafka=… must be HOST:PORT, or several with commas; {seen}")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_S).close()
    except (OSError, OverflowError) as error:
        return str(error)
    return ""
