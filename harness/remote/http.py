"""Requests over HTTP to one server: a connection for each thread, which is kept. Answers in XML as a tree."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.etree import ElementTree

from harness.errors import StackError

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
    """One server, at a host and port, which has `answer_s` for each answer."""

    host: str
    port: int
    secure: bool = False
    answer_s: float = ANSWER_S
    _own: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    def ask(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None, *, fresh: bool = False
    ) -> Answer:
        """The answer. A server closes a connection that was idle for seconds: then it is asked once more. So what may
        not be asked twice needs a `fresh` connection. Raises NoAnswer."""
        connection = self._connection()
        if fresh:
            connection.close()
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
            found = self._own.connection = kind(self.host, self.port, timeout=self.answer_s)
        return found


def _once(
    connection: http.client.HTTPConnection, method: str, target: str, headers: Mapping[str, str], body: bytes | None
) -> Answer:
    connection.request(method, target, body=body, headers=dict(headers))
    with connection.getresponse() as found:
        return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())


def tree(data: bytes, server: str, *, log: str) -> ElementTree.Element:
    """What `server` has answered in XML, without its namespace, which not every server names. Raises StackError, which
    names the server's `log`."""
    try:
        found = ElementTree.fromstring(data)
    except ElementTree.ParseError as failure:
        raise StackError(f"asked {server}; its answer is no XML: {failure}. See {log}") from failure
    for each in found.iter():
        each.tag = each.tag.rpartition("}")[2]
    return found
