"""A proxy: listens on loopback, and passes what comes to one server, byte for byte."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from harness.errors import StackError
from harness.remote.proxy.connection import Connection
from harness.remote.proxy.exchange import Exchange, Held, Hold, Watch

LOOPBACK = "127.0.0.1"
START_S = 10.0
BACKLOG = 128


class Proxy:
    """In front of the server at a host and port, without TLS. It runs in a thread of this process, and ends
    with it."""

    def __init__(self, host: str, port: int, *, what: str) -> None:
        self._to, self._what = (host, port), what
        self._listener: socket.socket | None = None
        self._holds: list[Hold] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._guarded, name=f"proxy to {what}", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self.port = 0
        """Where it listens; 0 before its start."""

    @property
    def url(self) -> str:
        """Its address by HTTP."""
        return f"http://{LOOPBACK}:{self.port}"

    def start(self, port: int = 0) -> None:
        """Listen, on a free port or on that one. Raises StackError."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((LOOPBACK, port))
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            raise StackError(f"port {port} was asked for the proxy to {self._what}; {error.strerror}") from error
        listener.setblocking(False)
        self._listener, self.port = listener, listener.getsockname()[1]
        self._thread.start()
        if not self._ready.wait(START_S):
            raise StackError(f"waited {START_S:g} s for the proxy to {self._what} to begin; its thread has not")

    def check(self) -> None:
        """Raise StackError if it has failed."""
        if self._failure is not None:
            raise StackError(f"the proxy to {self._what} failed: {self._failure!r}") from self._failure

    def close(self) -> None:
        """End every connection, and what is held with it. Returns when the thread is gone; safe to call twice."""
        loop, over = self._loop, self._over
        if loop is not None and over is not None and self._thread.is_alive():
            with suppress(RuntimeError):  # It has just ended.
                loop.call_soon_threadsafe(over.set)
            self._thread.join(START_S)
        if self._listener is not None:
            self._listener.close()

    @contextmanager
    def armed(self, watch: Watch) -> Iterator[Hold]:
        """Have `watch` see each request from now on. One that is held stays so afterwards, until it is let go."""
        hold = Hold(watch)
        with self._lock:
            self._holds = [*self._holds, hold]
        try:
            yield hold
        finally:
            hold.disarm()
            with self._lock:
                self._holds = [each for each in self._holds if each is not hold]

    def caught(self, exchange: Exchange) -> Held | None:
        """Return the request, held, if some watch wants it held; None if it may pass. A connection calls this."""
        return next((held for hold in self._holds if (held := hold.caught(exchange)) is not None), None)

    def _guarded(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self._failure = failure
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        connections: set[asyncio.Task[None]] = set()
        accepting = asyncio.create_task(self._accept(connections))
        ending = asyncio.create_task(self._over.wait())
        self._ready.set()
        try:
            await asyncio.wait({accepting, ending}, return_when=asyncio.FIRST_COMPLETED)
            if accepting.done():
                accepting.result()
        finally:
            tasks = [accepting, ending, *connections]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, connections: set[asyncio.Task[None]]) -> None:
        loop = asyncio.get_running_loop()
        assert self._listener is not None

        def ended(client: socket.socket, task: asyncio.Task[None]) -> None:
            # One that is cancelled before it has begun does not close it.
            client.close()
            connections.discard(task)
            if not task.cancelled() and task.exception() is not None:
                # What a peer does to a connection is caught there: this is a mistake of ours.
                self._failure = task.exception()

        while True:
            client, _ = await loop.sock_accept(self._listener)
            task = loop.create_task(Connection(client, self._to, self).run())
            connections.add(task)
            task.add_done_callback(partial(ended, client))
