"""One connection of a client through a proxy: its requests to the server, the answers back."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import struct
from collections import deque
from pathlib import Path
from typing import Any, Protocol

from harness.remote.proxy.exchange import Exchange, Held
from harness.remote.proxy.framing import Framing, Head

CONNECT_S = 10.0
LINGER_S = 5.0
"""How long one side may go on once the other one has ended."""
CHUNK = 1 << 16
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ADDRESS, ESTABLISHED = "0100007F", "01"
"""Of loopback, and a socket's state, as these tables write them."""
AWAY = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class Watching(Protocol):
    """Sees the requests of all connections."""

    def caught(self, exchange: Exchange) -> Held | None:
        """Return the held request if one whose head is there is to be held first; None if it may pass."""


class Connection:
    """From its acceptance to its end. `server` is a host and a port."""

    def __init__(self, client: socket.socket, server: tuple[str, int], watching: Watching) -> None:
        self._client, self._to, self._watching = client, server, watching
        self._server: socket.socket | None = None
        self._answering: asyncio.Task[None] | None = None
        self._resumed: asyncio.Future[None] | None = None
        """While a request is held: done once it goes on."""
        self._awaited: deque[Exchange] = deque()
        """The requests that were sent on and have no answer yet, oldest first."""

    async def run(self) -> None:
        """Return when both sides have ended. Whatever fails on one side fails on the other one too."""
        plain(self._client)
        requests: asyncio.Task[bool] | None = None
        try:
            await self._open()
            requests = asyncio.create_task(self._requests())
            await self._until_closed(requests)
        except (OSError, TimeoutError):
            reset(self._client)
            if self._server is not None:
                reset(self._server)
        finally:
            tasks = [task for task in (requests, self._answering) if task is not None]
            for task in tasks:
                task.cancel()
            try:
                await asyncio.gather(*tasks, return_exceptions=True)
            finally:
                # Also where the proxy ends while this connection does.
                self._client.close()
                if self._server is not None:
                    self._server.close()

    async def _until_closed(self, requests: asyncio.Task[bool]) -> None:
        while not requests.done():
            assert self._answering is not None
            sides: set[asyncio.Future[Any]] = {requests, self._answering}
            await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
            if requests.done():
                break
            self._answering.result()
            if self._resumed is None:
                # The server has closed, and its client may read what there is.
                shut(self._client)
                await asyncio.wait({requests}, timeout=LINGER_S)
                return
            # A server closes a connection that is idle for some seconds: no matter to a request that is held.
            sides = {requests, self._resumed}
            await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
        if requests.result() and self._server is not None and self._answering is not None:
            shut(self._server)
            done, _ = await asyncio.wait({self._answering}, timeout=LINGER_S)
            for task in done:
                task.result()

    async def _open(self) -> None:
        """Connect to the server, and pass its answers on from then on."""
        if self._server is not None:
            self._server.close()
        self._server = server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        plain(server)
        async with asyncio.timeout(CONNECT_S):
            await asyncio.get_running_loop().sock_connect(server, self._to)
        self._answering = asyncio.create_task(self._answers(server))

    async def _requests(self) -> bool:
        """Until the client has ended; False if a request of it was dropped."""
        framing, loop = Framing(answers=False), asyncio.get_running_loop()
        while data := await loop.sock_recv(self._client, CHUNK):
            for piece in framing.take(data):
                if piece.head is not None and not await self._admitted(piece.head):
                    return False
                assert self._server is not None
                await loop.sock_sendall(self._server, piece.data)
        if self._server is not None and (rest := framing.rest()):
            await loop.sock_sendall(self._server, rest)
        return True

    async def _admitted(self, head: Head) -> bool:
        """Return whether the request may go on, once that is known."""
        exchange = Exchange(head.first, head.second, head.headers)
        held = self._watching.caught(exchange)
        if held is not None:
            self._resumed = resumed = asyncio.get_running_loop().create_future()
            if not await held.over(lost=self._lost):
                return False
            if self._left():
                await self._open()
            self._resumed = None
            resumed.set_result(None)
        self._awaited.append(exchange)
        return True

    def _lost(self) -> str:
        """Return why a request that was held cannot go on; empty if it can."""
        return "its client is gone" if gone(self._client) else ""

    def _left(self) -> bool:
        """Return whether the server has closed its side."""
        return self._answering is None or self._answering.done()

    async def _answers(self, server: socket.socket) -> None:
        """Until the server has ended."""
        framing, loop = Framing(answers=True, bodiless=self._bodiless), asyncio.get_running_loop()
        while data := await loop.sock_recv(server, CHUNK):
            for piece in framing.take(data):
                if piece.head is not None and not piece.head.interim and self._awaited:
                    self._awaited.popleft().status = piece.head.status
                await loop.sock_sendall(self._client, piece.data)
        if rest := framing.rest():
            await loop.sock_sendall(self._client, rest)

    def _bodiless(self, head: Head) -> bool:
        return bool(self._awaited) and self._awaited[0].method == "HEAD"


def plain(each: socket.socket) -> None:
    """What is sent goes at once."""
    each.setblocking(False)
    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def shut(each: socket.socket) -> None:
    """Say that nothing more comes."""
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_WR)


def reset(each: socket.socket) -> None:
    """Close it so that its peer does not take what it has for the whole."""
    with contextlib.suppress(OSError):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def gone(each: socket.socket) -> bool:
    """Return whether its peer, a process of this machine, has closed it, or died. Read from the system, whatever it had
    sent before."""
    try:
        return closed(each) or _left_alone(each)
    except (OSError, ValueError):
        return True


def closed(each: socket.socket) -> bool:
    """Return whether its peer has said that nothing more comes, or there is none."""
    poll = select.poll()
    try:
        poll.register(each, AWAY)
        return bool(poll.poll(0))
    except (OSError, ValueError):
        return True


def _left_alone(each: socket.socket) -> bool:
    """Return the same of a peer whose word that it has closed is stuck behind what it had sent: the system's table has
    its socket in another state, or no more. False where there is no such table."""
    tables = [path for path in TABLES if path.exists()]
    peer, here = (f"{ADDRESS}:{name[1]:04X}" for name in (each.getpeername(), each.getsockname()))
    rows = [line.split() for path in tables for line in path.read_text(encoding="ascii").splitlines()[1:]]
    own = [row[3] for row in rows if row[1].endswith(peer) and row[2].endswith(here)]
    return bool(tables) and ESTABLISHED not in own
