"""Hadoop's RPC as its clients speak it, made by hand: for tests of what reads it, and of a NameNode."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.components.hdfs import rpc

PROTOCOL = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
NO_LOGIN, SASL = 0, 0xDF
CONTEXT, NEGOTIATION, PING = -3, -33, -4
"""The numbers of what is no call."""
Given = tuple[int, "int | bytes | str"]
CLIENT_ID = bytes(range(16))
WITHIN_S = 20.0


def varint(number: int) -> bytes:
    """The number in Protocol Buffers' form."""
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def zigzag(number: int) -> int:
    """A number that may be below zero, as one that is not."""
    return -2 * number - 1 if number < 0 else 2 * number


def message(*given: Given) -> bytes:
    """A message of these fields, each a number of its own and a value."""
    out = b""
    for number, value in given:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + delimited(data)
    return out


def delimited(data: bytes) -> bytes:
    """With its length before it."""
    return varint(len(data)) + data


def preamble(login: int = NO_LOGIN) -> bytes:
    """How a connection begins."""
    return b"hrpc" + bytes([9, 0, login])


def framed(data: bytes) -> bytes:
    """One frame."""
    return len(data).to_bytes(4) + data


def header(number: int, *, kind: int = 2, operation: int = 0) -> bytes:
    """What each frame begins with."""
    said = message((1, kind), (2, operation), (3, zigzag(number)), (4, CLIENT_ID), (5, zigzag(-1)))
    return delimited(said)


def context(user: str = "somebody") -> bytes:
    """The frame that names user and protocol."""
    return framed(header(CONTEXT) + delimited(message((2, message((1, user))), (3, PROTOCOL))))


def negotiation(state: int = 1) -> bytes:
    """A frame of a login by SASL; 1 asks which there are."""
    return framed(header(NEGOTIATION) + delimited(message((2, state))))


def ping() -> bytes:
    """The frame of a client that waits."""
    return framed(header(PING))


def call(method: str, *given: Given, number: int = 0, protocol: str = PROTOCOL) -> bytes:
    """The frame of a call."""
    named = message((1, method), (2, protocol), (3, 1))
    return framed(header(number) + delimited(named) + delimited(message(*given)))


def create(path: str, number: int = 0) -> bytes:
    """A file is made, and nothing is in it yet."""
    permission = message((1, 0o644))
    given: tuple[Given, ...] = ((1, path), (2, permission), (3, "client"), (4, 1), (5, 1), (6, 1), (7, 1 << 20))
    return call("create", *given, number=number)


def rename(path: str, to: str, number: int = 0, *, method: str = "rename2") -> bytes:
    """A file is given another name; of the newer method, only if there is none of it."""
    given: tuple[Given, ...] = ((1, path), (2, to), (3, 0)) if method == "rename2" else ((1, path), (2, to))
    return call(method, *given, number=number)


@dataclass
class Client:
    """A connection to a NameNode, or to what stands before it, without a login."""

    there: socket.socket
    _buffer: bytes = field(default=b"", repr=False)

    def sends(self, data: bytes) -> None:
        """All of it."""
        self.there.sendall(data)

    def answer(self) -> tuple[int, int]:
        """The number of the call that is answered next, and its status: 0 for one that was done."""
        size = int.from_bytes(self._exactly(4))
        said, _ = rpc.delimited(self._exactly(size))
        found = rpc.fields(said)
        number, status = found[1], found[2]
        assert isinstance(number, int) and isinstance(status, int)
        return number, status

    def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = self.there.recv(1 << 16)
            if not data:
                raise ConnectionError(f"{len(self._buffer)} of {count} bytes came")
            self._buffer += data
        out, self._buffer = self._buffer[:count], self._buffer[count:]
        return out


@contextmanager
def client(port: int, *, begin: bytes | None = None) -> Iterator[Client]:
    """One at a port of this machine, which has said who it is, or what `begin` says."""
    with socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S) as there:
        made = Client(there)
        made.sends(preamble() + context() if begin is None else begin)
        yield made
