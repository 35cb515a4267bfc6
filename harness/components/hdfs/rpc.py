"""Where the calls of a client begin and end on a connection of Hadoop's RPC, and what those ask for by which files come
to be. No byte is changed, none is left out.

A connection begins with `hrpc`, a version, a service class and how its client logs in. Then come frames: four bytes for
the length of what follows, which is for a call its header (`RpcRequestHeaderProto`), the name of its method
(`RequestHeaderProto`) and what that is given, each in Protocol Buffers' form with its length before it. Whoever logs in
sends frames of the same form; what they protect from then on is inside of such frames, and is not read. A frame that is
no such call passes, whatever it holds. What is no such connection passes too, and from there on nothing of it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.remote.relay.framing import Head, Piece, Reader, Unread
from harness.remote.relay.speech import Speech

MAGIC = b"hrpc\x09"
"""With the version, which is the one since Hadoop 2."""
PREAMBLE = 7
LOGINS = (0, 0xDF)
"""None, and SASL."""
FRAME_MAX = 128 << 20
"""The longest frame, in bytes: a NameNode takes none that is longer."""
CALL_MAX = 1 << 16
"""The same of one that is kept back until it is whole, and read. The longest path is 8,000 characters."""
CLIENT = b"org.apache.hadoop.hdfs.protocol.ClientProtocol"
CREATE, RENAMES = "create", ("rename", "rename2")
TO = "to"
"""The header of a rename that has its second path."""
PROTOBUF, FINAL = 2, 0
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
VARINT_MAX = 10


class Calls(Reader):
    """The direction from a client to the server. The head of a call has its method and its first path."""

    def __init__(self) -> None:
        super().__init__()
        self._state, self._next = self._preamble, self._frame

    def _preamble(self) -> Iterator[Piece]:
        if not MAGIC.startswith(self._buffer[: len(MAGIC)]):
            raise Unread
        if len(self._buffer) < PREAMBLE:
            return
        if self._buffer[PREAMBLE - 1] not in LOGINS:
            raise Unread
        self._state = self._frame
        yield Piece(self._take(PREAMBLE))

    def _frame(self) -> Iterator[Piece]:
        if len(self._buffer) < 4:
            return
        size = int.from_bytes(self._buffer[:4])
        if size > FRAME_MAX:
            raise Unread
        if size > CALL_MAX:
            self._left, self._state = size, self._body
            yield Piece(self._take(4))
        elif len(self._buffer) >= 4 + size:
            data = self._take(4 + size)
            yield Piece(data, called(data[4:]))


RPC = Speech(requests=Calls, answers=lambda bodiless: Reader(), alone=False)
"""Its answers are not read: they come in any order."""


def called(frame: bytes) -> Head | None:
    """What a frame asks for, if it is a call that creates or renames a file."""
    try:
        header, rest = delimited(frame)
        if not _is_call(fields(header)):
            return None
        header, rest = delimited(rest)
        said = fields(header)
        given, rest = delimited(rest)
        if said.get(2) != CLIENT or rest:
            return None
        method, paths = _text(said.get(1)), fields(given)
        if method == CREATE:
            return Head(method, _text(paths.get(1)), "", {})
        if method in RENAMES:
            return Head(method, _text(paths.get(1)), "", {TO: _text(paths.get(2))})
    except ValueError:
        pass
    return None


def _is_call(header: dict[int, int | bytes]) -> bool:
    """Not a login, a ping, or what else a client sends under a number below zero, which is odd in this form."""
    number = header.get(3)
    whole = header.get(1) == PROTOBUF and header.get(2, FINAL) == FINAL
    return whole and isinstance(number, int) and number % 2 == 0


def _text(value: int | bytes | None) -> str:
    """Raises ValueError for what is none."""
    if not isinstance(value, bytes):
        raise ValueError("no text")
    return value.decode()


def delimited(data: bytes) -> tuple[bytes, bytes]:
    """A message with its length before it, and what follows. Raises ValueError."""
    size, at = varint(data, 0)
    if len(data) - at < size:
        raise ValueError("it breaks off")
    return data[at : at + size], data[at + size :]


def fields(data: bytes) -> dict[int, int | bytes]:
    """The fields of a message by their numbers: a varint as a number, all others as bytes; of one that is given twice
    the last. Raises ValueError."""
    out: dict[int, int | bytes] = {}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, form = tag >> 3, tag & 7
        if not number:
            raise ValueError("a field has no number")
        if form == VARINT:
            out[number], at = varint(data, at)
            continue
        size, at = varint(data, at) if form == BYTES else (_fixed(form), at)
        if len(data) - at < size:
            raise ValueError("a field breaks off")
        out[number], at = data[at : at + size], at + size
    return out


def _fixed(form: int) -> int:
    if form not in (FIXED64, FIXED32):
        raise ValueError("a field of no known form")
    return 8 if form == FIXED64 else 4


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, below 2^64, and where it ends. Raises ValueError."""
    value = 0
    for place, byte in enumerate(data[at : at + VARINT_MAX]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            if value >> 64:
                break
            return value, at + place + 1
    raise ValueError("no number")
