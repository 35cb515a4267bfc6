"""Serves the records of one run by their numbers. What was served once is served again, byte by byte.

GET /end                        how many there are: the number that the next one will have
GET /records?start=10&end=20    the records 10 to 19, a line each; 416 where the log does not reach that far
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from harness.hosts.ports import LOOPBACK
from harness.sources.lines import Line, text

SILENT_S = 30.0
"""How long a client may keep a connection without asking."""
CLOSE_S = 5.0


class RecordLog:
    """The records of one run, and who serves them. Thread-safe."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._server = _Server((LOOPBACK, 0), _handler(self._lines))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="record log", daemon=True)
        self._thread.start()

    @property
    def placeholders(self) -> Mapping[str, str]:
        """Its address."""
        return {"url": f"http://{LOOPBACK}:{self._server.server_address[1]}"}

    def append(self, values: Sequence[bytes]) -> int:
        """Add records at the end, each of which is a line; the number of the first of them."""
        first, now_ms = len(self._lines), int(time.time() * 1000)
        self._lines.extend(Line(value, now_ms) for value in values)
        return first

    def lines(self) -> list[Line]:
        """Return all of them."""
        return list(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def alive(self) -> bool:
        """Return whether it still serves."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(CLOSE_S)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed while it was answered."""


def _handler(lines: Sequence[Line]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = SILENT_S

        def do_GET(self) -> None:
            status, body = answer(lines, self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """The run's history has what matters."""

    return Handler


def answer(lines: Sequence[Line], target: str) -> tuple[HTTPStatus, bytes]:
    """Return the answer to a request."""
    url, many = urlsplit(target), len(lines)
    if url.path == "/end":
        return HTTPStatus.OK, b"%d" % many
    if url.path != "/records":
        return HTTPStatus.NOT_FOUND, b"ask for /end, or for /records?start=10&end=20\n"
    parameters = parse_qs(url.query)
    try:
        (start,), (end,) = (map(int, parameters[name]) for name in ("start", "end"))
    except (KeyError, ValueError):
        return HTTPStatus.BAD_REQUEST, b"start and end are whole numbers, each given once\n"
    if not 0 <= start <= end <= many:
        words = f"records {start} to {end} were asked for, and there are {many}\n"
        return HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, words.encode()
    return HTTPStatus.OK, text([line.value for line in lines[start:end]])
