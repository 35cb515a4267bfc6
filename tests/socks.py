"""A tiny SOCKS5 proxy for tests: it carries connections, and can lose what the other side answers, or cut.

Through SOCKS a Kafka client takes this way to every address that the broker advertises; the broker needs no change."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable

CHUNK = 1 << 16
TICK_S = 0.1


class Socks:
    """`swallow` true: requests reach the broker, answers are lost. `cut` is asked before each piece of an answer is
    handed on: true closes the connection instead. `refuse` true: no new connections, and none survives."""

    def __init__(self) -> None:
        self.swallow = False
        self.refuse = False
        self.cut: Callable[[], bool] = lambda: False
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(TICK_S)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"socks5://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """Cut everything and return when the threads are gone."""
        self._over.set()
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                client, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(5)
            if self.refuse:
                return
            with socket.create_connection(_asked(client), timeout=5) as broker:
                client.sendall(b"\x05\x00\x00\x01" + bytes(6))
                self._carry(client, broker)

    def _carry(self, client: socket.socket, broker: socket.socket) -> None:
        while not self._over.is_set() and not self.refuse:
            ready, _, _ = select.select([client, broker], [], [], TICK_S)
            for side in ready:
                piece = side.recv(CHUNK)
                if not piece:
                    return
                if side is client:
                    broker.sendall(piece)
                elif self.cut():
                    self.cuts += 1
                    return
                elif not self.swallow:
                    client.sendall(piece)


def _asked(client: socket.socket) -> tuple[str, int]:
    """Shake hands and return the address that the client wants."""
    _, methods = _read(client, 2)
    _read(client, methods)
    client.sendall(b"\x05\x00")
    _, _, _, kind = _read(client, 4)
    host = socket.inet_ntoa(_read(client, 4)) if kind == 1 else _read(client, _read(client, 1)[0]).decode()
    return host, int.from_bytes(_read(client, 2), "big")


def _read(client: socket.socket, count: int) -> bytes:
    out = b""
    while len(out) < count:
        piece = client.recv(count - len(out))
        if not piece:
            raise ConnectionError("the client left while shaking hands")
        out += piece
    return out
