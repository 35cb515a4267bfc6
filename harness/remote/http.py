"""Requests over HTTP to one server: its connections are kept until it is closed. Answers in XML as a tree."""

from __future__ import annotations

import http.client
import json
import urllib.request
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.etree import ElementTree

from harness.errors import StackError, one_line

ANSWER_S, PAGE_S = 30.0, 5.0
CLOSED = (http.client.RemoteDisconnected, ConnectionError, http.client.CannotSendRequest)


class Answer(NamedTuple):
    """What came back. The names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class NoAnswer(Exception):
    """The server gave none; its words are the system's."""


class Refused(StackError):
    """The server says that what was asked is wrong, or not for who asked. `status` is HTTP's, `kind` the server's word
    for it, such as `NoSuchBucket`."""

    def __init__(self, words: str, status: int, kind: str) -> None:
        super().__init__(words)
        self.status, self.kind = status, kind


@dataclass(frozen=True)
class Http:
    """One server, at a host and port, which has `answer_s` for each answer. Several threads may ask at once."""

    host: str
    port: int
    secure: bool = False
    answer_s: float = ANSWER_S
    _idle: deque[http.client.HTTPConnection] = field(default_factory=deque, repr=False, compare=False)
    """The idle connections: as many as have asked at once."""

    def ask(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None, *, fresh: bool = False
    ) -> Answer:
        """Return the answer to a request. A server closes a connection that was idle for seconds: then the request is
        sent again. So a request that may not be sent twice needs a `fresh` connection. Raises NoAnswer."""
        try:
            connection = self._idle.pop()
        except IndexError:
            kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
            connection = kind(self.host, self.port, timeout=self.answer_s)
        try:
            return _answered(connection, method, target, headers, body, fresh=fresh)
        finally:
            self._idle.append(connection)

    def close(self) -> None:
        """Close its connections. Who asks again makes a new one."""
        while self._idle:
            self._idle.pop().close()


def _answered(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
    *,
    fresh: bool,
) -> Answer:
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
        raise NoAnswer(one_line(failure)) from failure


def _once(
    connection: http.client.HTTPConnection, method: str, target: str, headers: Mapping[str, str], body: bytes | None
) -> Answer:
    connection.request(method, target, body=body, headers=dict(headers))
    with connection.getresponse() as found:
        return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())


def see(log: str) -> str:
    """Return words that name the log of a server of ours; empty where it is none."""
    return f". See {log}" if log else ""


def tree(data: bytes, server: str, *, log: str) -> ElementTree.Element:
    """Return what `server` has answered in XML, without its namespace, which not every server names. Raises StackError,
    which names the server's `log`, if it is one of ours."""
    try:
        found = ElementTree.fromstring(data)
    except ElementTree.ParseError as failure:
        raise StackError(f"asked {server}; its answer is no XML: {failure}{see(log)}") from failure
    for each in found.iter():
        each.tag = each.tag.rpartition("}")[2]
    return found


def json_page(url: str, body: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Get a page in JSON, or put `body`; no proxy of the user's is asked. Raises OSError (HTTPError for a refusal), and
    ValueError for what is no JSON."""
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode() if body else None,
        method="PUT" if body else "GET",
        headers={"Accept": "application/json", "Content-Type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PAGE_S) as page:
        found: dict[str, Any] = json.load(page)
        return found
