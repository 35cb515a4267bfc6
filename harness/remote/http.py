"""Requests over HTTP to one server: a connection for each thread, which is kept."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

ANSWER_S = 30.0
CLOSED = (http.client.RemoteDisconnected, ConnectionError, http.client.CannotSendRequest)


class Answer(NamedTuple):
    """What came back. The names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class NoAnswer(Exception):
    """The server gave none; its words are the system's."""


@dataclass(frozen=True)
class Http:
    """One server, at a host and port."""

    host: str
    port: int
    secure: bool = False
    _own: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        """The answer. A server closes a connection that was idle for seconds: then it is asked once more, so ask for
        what may be asked twice. Raises NoAnswer."""
        connection = self._connection()
        fresh = connection.sock is None
        try:
            try:
                return _once(connection, method, target, headers, body)
            except CLOSED:
                connection.close()
                if fresh:
                    raise
            return _once(connection, method, target, headers, body)
        except (OSError, http.client.HTTPException) as failure:
            connection.close()
            raise NoAnswer(" ".join(str(failure).split()) or type(failure).__name__) from failure

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if found is None:
            kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
            found = self._own.connection = kind(self.host, self.port, timeout=ANSWER_S)
        return found


def _once(
    connection: http.client.HTTPConnection, method: str, target: str, headers: Mapping[str, str], body: bytes | None
) -> Answer:
    connection.request(method, target, body=body, headers=dict(headers))
    with connection.getresponse() as found:
        return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
