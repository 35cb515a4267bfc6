"""Where the messages of one direction of an HTTP/1.1 connection begin and end. No byte is changed, none is left out.

A head is kept back until it is whole; a body passes as it comes. What cannot be read as HTTP/1.1 passes too, and from
there on nothing of the connection is read any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

HEAD_MAX = 1 << 16
"""The longest head, in bytes; a longer one is not read."""
LINE_MAX = 1 << 12
"""The same of a line between the chunks of a body."""
END = b"\r\n\r\n"
REQUEST = re.compile(r"([A-Z]{1,20}) ([!-~]+) (HTTP/1\.[01])")
ANSWER = re.compile(r"(HTTP/1\.[01]) ([1-5][0-9]{2})(?: (.*))?", re.DOTALL)
SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;[^\r\n]*)?\r\n")
BODILESS = (204, 304)
SWITCHED = 101


class Head(NamedTuple):
    """The first line of a message, in its three words, and its headers by their names in small letters. A header that
    is given twice has its values with a comma between them."""

    first: str
    second: str
    third: str
    headers: dict[str, str]

    @property
    def status(self) -> int:
        """Of an answer."""
        return int(self.second)

    @property
    def interim(self) -> bool:
        """Return whether it is an answer before the answer, such as 100 Continue."""
        return self.second.startswith("1") and self.status != SWITCHED


class Piece(NamedTuple):
    """The next bytes of the connection; `head` is what they say where they are one."""

    data: bytes
    head: Head | None = None


class Unread(Exception):
    """It is nothing that is known here."""


class Reader:
    """One direction of a connection. Here nothing of it is read: all passes as it comes. What reads it begins with
    another `_state`. A state yields what of the buffer is to be passed on now, or nothing if more has to come first.
    `_next` is the state after a body. A state raises Unread at what it does not know, and nothing is read from there
    on."""

    def __init__(self) -> None:
        self._buffer = b""
        self._state: Callable[[], Iterator[Piece]] = self._rest
        self._next: Callable[[], Iterator[Piece]] = self._rest
        self._left = 0
        self.blind = False
        """Nothing is read any more: what comes passes as it is."""

    def take(self, data: bytes) -> Iterator[Piece]:
        """Yield what is to be passed on now, in order. Each piece is to be passed on before the next one is asked for:
        by then what follows a head is known."""
        self._buffer += data
        while self._buffer:
            before = self._buffer
            try:
                yield from self._state()
            except Unread:
                self._state, self.blind = self._rest, True
                continue
            if self._buffer == before:
                return

    def rest(self) -> bytes:
        """Return what was kept back, once the connection has ended."""
        kept, self._buffer = self._buffer, b""
        return kept

    def _take(self, count: int) -> bytes:
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def _rest(self) -> Iterator[Piece]:
        yield Piece(self._take(len(self._buffer)))

    def _body(self) -> Iterator[Piece]:
        data = self._take(self._left)
        self._left -= len(data)
        if not self._left:
            self._state = self._next
        yield Piece(data)


class Framing(Reader):
    """HTTP/1.1. `bodiless` says of a head whether no body follows it, whatever its headers say."""

    def __init__(self, *, answers: bool, bodiless: Callable[[Head], bool] = lambda head: False) -> None:
        super().__init__()
        self._answers, self._bodiless = answers, bodiless
        self._state = self._next = self._head

    def _head(self) -> Iterator[Piece]:
        # Some clients end a body with an empty line that no header counts.
        if self._buffer.startswith(b"\r\n"):
            yield Piece(self._take(2))
            return
        at = self._buffer.find(END)
        if at < 0:
            if len(self._buffer) > HEAD_MAX:
                raise Unread
            return
        head = parsed(self._buffer[:at], answers=self._answers)
        following = self._following(head)
        data = self._take(at + len(END))
        self._state = following
        yield Piece(data, head)

    def _following(self, head: Head) -> Callable[[], Iterator[Piece]]:
        """Return how what comes after a head is read."""
        if self._answers and head.status == SWITCHED:
            return self._switched
        if (self._answers and (head.interim or head.status in BODILESS)) or self._bodiless(head):
            return self._head
        coding = head.headers.get("transfer-encoding", "")
        if coding:
            if coding.rpartition(",")[2].strip().lower() != "chunked":
                raise Unread
            return self._size
        length = {each.strip() for each in head.headers.get("content-length", "").split(",")}
        if length == {""}:
            return self._rest if self._answers else self._head
        if len(length) > 1 or not (text := length.pop()).isascii() or not text.isdigit():
            raise Unread
        self._left, self._next = int(text), self._head
        return self._body if self._left else self._head

    def _switched(self) -> Iterator[Piece]:
        raise Unread

    def _line(self) -> bytes | None:
        """Return the next line, with its end; None while it is not whole."""
        at = self._buffer.find(b"\r\n")
        if at < 0:
            if len(self._buffer) > LINE_MAX:
                raise Unread
            return None
        return self._buffer[: at + 2]

    def _size(self) -> Iterator[Piece]:
        if (line := self._line()) is None:
            return
        if not (size := SIZE.match(line)):
            raise Unread
        self._left = int(size[1], 16)
        self._state, self._next = (self._body if self._left else self._trailer), self._chunk_end
        yield Piece(self._take(len(line)))

    def _chunk_end(self) -> Iterator[Piece]:
        if len(self._buffer) < 2:
            return
        if not self._buffer.startswith(b"\r\n"):
            raise Unread
        self._state = self._size
        yield Piece(self._take(2))

    def _trailer(self) -> Iterator[Piece]:
        if (line := self._line()) is None:
            return
        if line == b"\r\n":
            self._state = self._head
        yield Piece(self._take(len(line)))


def parsed(data: bytes, *, answers: bool) -> Head:
    """Return a head without its last line. Raises Unread."""
    first, *lines = data.decode("latin-1").split("\r\n")
    if (words := (ANSWER if answers else REQUEST).fullmatch(first)) is None:
        raise Unread
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise Unread
        key, value = name.lower(), value.strip()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return Head(words[1], words[2], words[3] or "", headers)
