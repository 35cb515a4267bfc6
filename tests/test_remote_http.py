"""Requests over HTTP: how many connections there are, and that none is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.remote.http import Http, NoAnswer

LONG_S = 30.0


class Counting(ThreadingHTTPServer):
    """Answers once `together` requests have come; `opened` and `closed` are connections."""

    def __init__(self, together: int) -> None:
        self.opened, self.closed = 0, threading.Semaphore(0)
        self.all_there = threading.Barrier(together, timeout=LONG_S)
        super().__init__(("127.0.0.1", 0), Answers)

    def finish_request(self, request: object, client_address: object) -> None:
        self.opened += 1
        super().finish_request(request, client_address)  # type: ignore[arg-type]
        self.closed.release()


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Counting)
        self.server.all_there.wait()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def asked(together: int) -> Iterator[tuple[Http, Counting]]:
    """A server, and who asks it."""
    with Counting(together) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        http = Http("127.0.0.1", server.server_address[1])
        try:
            yield http, server
        finally:
            http.close()
            server.shutdown()
            thread.join()


def test_one_after_the_other_is_one_connection_from_whatever_thread() -> None:
    with asked(1) as (http, server):
        for _ in range(3):
            thread = threading.Thread(target=http.ask, args=("GET", "/", {}))
            thread.start()
            thread.join()
        assert http.ask("GET", "/", {}).data == b"ok"
        assert server.opened == 1


def test_as_many_as_ask_at_once_are_kept_and_closed_together() -> None:
    with asked(3) as (http, server):
        threads = [threading.Thread(target=http.ask, args=("GET", "/", {})) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.opened == 3
        http.close()
        assert all(server.closed.acquire(timeout=LONG_S) for _ in range(3))


def test_what_may_not_be_asked_twice_has_a_connection_of_its_own() -> None:
    with asked(1) as (http, server):
        for _ in range(2):
            http.ask("GET", "/", {}, fresh=True)
        assert server.opened == 2


def test_after_it_was_closed_it_can_be_asked_again() -> None:
    with asked(1) as (http, server):
        http.ask("GET", "/", {})
        http.close()
        http.ask("GET", "/", {})
        assert server.opened == 2


def test_nobody_there_is_told_in_the_systems_words() -> None:
    with pytest.raises(NoAnswer, match="refused"):
        Http("127.0.0.1", 1).ask("GET", "/", {})
