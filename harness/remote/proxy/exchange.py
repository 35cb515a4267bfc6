"""What a proxy tells of a request, and what it can be asked to do with one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from harness.errors import HarnessError

HOLD_S = 30.0
"""After so long a held request goes on: before its client asks again, which S3A does after a minute, or gives up, which
one of HDFS does after two."""
LET_GO_S = 10.0


@dataclass(eq=False)
class Exchange:
    """A request and what came of it. The names of headers are in small letters; `target` is as it was sent. `status` is
    the answer's, None while nothing of one has come; it is there before the client has anything of the answer."""

    method: str
    target: str
    headers: Mapping[str, str]
    status: int | None = None

    @property
    def done(self) -> bool:
        """Return whether the server did what was asked."""
        return self.status is not None and 200 <= self.status < 300


class Watch(Protocol):
    """Sees the requests of a proxy."""

    def wants(self, exchange: Exchange) -> bool:
        """Return whether a request is to be held, of which the head is there and nothing was sent on. Called in the
        proxy's own thread, which waits for it."""


class State(StrEnum):
    """What became of a held request."""

    HELD = "held"
    SENT = "sent on"
    DROPPED = "dropped"


@dataclass(eq=False)
class Held:
    """One that is held, or was. `why` it is not any more; `early`: it was sent on before it was let go."""

    exchange: Exchange
    state: State = State.HELD
    why: str = ""
    early: bool = False
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop, repr=False)
    _decided: asyncio.Future[bool] = field(init=False, repr=False)
    _over: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        self._decided = self._loop.create_future()

    def let_go(self, *, drop: bool) -> None:
        """Send it on, or `drop` it; one whose client is gone is dropped. Returns once that is done; silent about one
        that is not held any more. Raises HarnessError."""
        if self._over.is_set():
            return
        try:
            self._loop.call_soon_threadsafe(self._decide, drop)
        except RuntimeError:
            return  # The proxy has ended, and with it the connection.
        if not self._over.wait(LET_GO_S):
            raise HarnessError(f"waited {LET_GO_S:g} s for the proxy to let a request go; it is {self.state}")

    def _decide(self, drop: bool) -> None:
        if not self._decided.done():
            self._decided.set_result(drop)

    async def over(self, *, lost: Watched) -> bool:
        """Wait until it may go on; False if it is dropped."""
        try:
            async with asyncio.timeout(HOLD_S):
                drop = await self._decided
            self.why = "its driver is dead" if drop else "let go"
        except TimeoutError:
            drop, self.early, self.why = False, True, f"it was not let go in {HOLD_S:g} s"
        except asyncio.CancelledError:
            self._end(State.DROPPED, "the proxy ended")
            raise
        if not drop and (why := lost()):
            drop, self.early, self.why = True, False, why
        self._end(State.DROPPED if drop else State.SENT, self.why)
        return not drop

    def _end(self, state: State, why: str) -> None:
        self.state, self.why = state, why
        self._over.set()


class Watched(Protocol):
    """Tells of a connection."""

    def __call__(self) -> str:
        """Return why a request can go on no more; empty if it can."""


@dataclass(eq=False)
class Hold:
    """A watch that is armed, and what it has met: the first request that it wanted held. It wants no more then."""

    watch: Watch
    held: Held | None = None
    _disarmed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def caught(self, exchange: Exchange) -> Held | None:
        """Return the request, held from now on; None if it may pass."""
        with self._lock:
            if self.held is not None or self._disarmed or not self.watch.wants(exchange):
                return None
            self.held = Held(exchange)
            return self.held

    def disarm(self) -> None:
        """Hold nothing more from here on."""
        with self._lock:
            self._disarmed = True
