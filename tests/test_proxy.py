"""The proxy in front of an object store: every byte passes as it came, and a request that is wanted is held."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.components.azure.blob import BlobService
from harness.components.s3.server import Server
from harness.errors import StackError
from harness.remote.proxy import exchange
from harness.remote.proxy.commits import Commits, Dialect, HeldRequest, Name, Operation, named
from harness.remote.proxy.connection import Connection
from harness.remote.proxy.exchange import Exchange, Held, State
from harness.remote.proxy.framing import Framing, Head, Piece
from harness.remote.proxy.server import Proxy
from harness.wait import until

WITHIN_S = 20.0
S3, AZURE = Server.dialect, BlobService.dialect
TOKEN = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12)
VALUE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30).map(str.strip)
BODY = st.binary(max_size=300)


@dataclass(frozen=True)
class Sent:
    """A message as it goes over the wire, and what is to be read of it."""

    head: bytes
    body: bytes
    first: str


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, bytes]:
    """A body as it is sent, and the header that says how long it is."""
    content = draw(BODY)
    if draw(st.booleans()):
        return f"Content-Length: {len(content)}", content
    cuts = sorted(draw(st.lists(st.integers(0, len(content)), max_size=4)))
    parts = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True) if a < b]
    note = draw(st.sampled_from([b"", b";name=value", b' ; chunk-signature="x"']))
    trailer = draw(st.sampled_from([b"", b"x-amz-checksum-crc32: AAAA\r\n"]))
    sent = b"".join(b"%x%s\r\n%s\r\n" % (len(part), note, part) for part in parts)
    return "Transfer-Encoding: chunked", sent + b"0\r\n" + trailer + b"\r\n"


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    """One that any client may send."""
    method = draw(st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE"]))
    target = draw(st.sampled_from(["/", "/b/a%20b?x-id=PutObject", "/b/commits/3", "*"]))
    lines = [f"{name}: {value}" for name, value in draw(st.lists(st.tuples(TOKEN, VALUE), max_size=4))]
    lines = [line for line in lines if not line.lower().startswith(("content-length:", "transfer-encoding:"))]
    sized, body = draw(bodies()) if method in ("PUT", "POST") else ("", b"")
    expects = ["Expect: 100-continue"] * (bool(sized) and draw(st.booleans()))
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *lines, *filter(None, [sized]), *expects, "", ""])
    return Sent(head.encode(), body, method)


@st.composite
def answers(draw: st.DrawFn) -> Sent:
    """What a server says to a GET, with what it may say before."""
    status = draw(st.sampled_from([200, 202, 204, 206, 304, 404, 503]))
    sized, body = draw(bodies())
    if status in (204, 304):
        body = b""
    before = draw(
        st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"])
    )
    head = before + f"HTTP/1.1 {status} Some Words\r\nServer: it\r\n{sized}\r\n\r\n".encode()
    return Sent(head, body, str(status))


def cut(data: bytes, at: list[int]) -> Iterator[bytes]:
    """The same bytes, as a network may hand them over."""
    places = sorted({min(each, len(data)) for each in at})
    for low, high in zip([0, *places], [*places, len(data)], strict=True):
        if low < high:
            yield data[low:high]


def taken(framing: Framing, data: bytes, at: list[int]) -> tuple[list[Head], bytes]:
    """The heads that were read, and all that was passed on."""
    pieces: list[Piece] = [piece for part in cut(data, at) for piece in framing.take(part)]
    return [piece.head for piece in pieces if piece.head], b"".join(piece.data for piece in pieces) + framing.rest()


CUTS = st.lists(st.integers(0, 3000), max_size=12)


@given(st.lists(requests(), min_size=1, max_size=5), CUTS)
def test_each_request_of_a_connection_is_read_and_passes_unchanged(sent: list[Sent], at: list[int]) -> None:
    wire = b"".join(each.head + each.body for each in sent)
    framing = Framing(answers=False)
    heads, passed = taken(framing, wire, at)
    assert passed == wire
    assert [head.first for head in heads] == [each.first for each in sent]
    assert not framing.blind


@given(st.lists(answers(), min_size=1, max_size=5), CUTS)
def test_each_answer_of_a_connection_is_read_and_passes_unchanged(sent: list[Sent], at: list[int]) -> None:
    wire = b"".join(each.head + each.body for each in sent)
    framing = Framing(answers=True)
    heads, passed = taken(framing, wire, at)
    assert passed == wire
    assert [head.second for head in heads if not head.interim] == [each.first for each in sent]
    assert not framing.blind


@given(
    st.lists(requests() | st.binary(max_size=40).map(lambda data: Sent(data, b"", "")), max_size=4), CUTS, st.booleans()
)
def test_whatever_comes_passes_unchanged(sent: list[Sent], at: list[int], answers: bool) -> None:
    wire = b"".join(each.head + each.body for each in sent)
    assert taken(Framing(answers=answers), wire, at)[1] == wire


@given(requests(), st.integers(0, 3000))
def test_a_head_is_passed_only_once_it_is_whole(sent: Sent, at: int) -> None:
    short = sent.head[: min(at, len(sent.head) - 1)]
    assert [*Framing(answers=False).take(short)] == []


@pytest.mark.parametrize(
    "wire",
    [
        b"GET / HTTP/2.0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"PUT /b/k HTTP/1.1\r\nContent-Length: 3, 4\r\n\r\nabc",
        b"PUT /b/k HTTP/1.1\r\nContent-Length: -3\r\n\r\nabc",
        b"PUT /b/k HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        b"PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
        b"PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
    ],
)
def test_what_is_no_http_is_not_read_on(wire: bytes) -> None:
    framing = Framing(answers=False)
    heads, passed = taken(framing, wire + b"GET / HTTP/1.1\r\n\r\n", [])
    assert framing.blind and len(heads) < 2
    assert passed == wire + b"GET / HTTP/1.1\r\n\r\n"


def test_the_answer_to_a_head_request_has_no_body_whatever_its_length_says() -> None:
    told = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    methods = iter(["HEAD", "GET"])
    framing = Framing(answers=True, bodiless=lambda head: next(methods) == "HEAD")
    heads, passed = taken(framing, told + told + b"abcde", [])
    assert (len(heads), passed) == (2, told + told + b"abcde")


class Store(BaseHTTPRequestHandler):
    """Keeps what is put, and says what was asked."""

    kept: dict[str, bytes]
    asked: list[str]
    idle_s: float | None = None
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.idle_s)

    def do_PUT(self) -> None:
        if source := self.headers.get(S3.copy_source):
            self.kept[self.path] = self.kept[f"/{source}"]
        elif self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            self.kept[self.path] = body
        else:
            self.kept[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._told(200)

    def do_DELETE(self) -> None:
        self._told(204 if self.kept.pop(self.path, None) is not None else 404)

    def do_GET(self) -> None:
        self._told(200 if self.path in self.kept else 404, self.kept.get(self.path, b""))

    do_HEAD = do_GET

    def _told(self, status: int, body: bytes = b"") -> None:
        self.asked.append(f"{self.command} {self.path}")
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@dataclass
class Stage:
    """A store, a proxy in front of it, and clients of the proxy."""

    store: type[Store]
    proxy: Proxy
    clients: list[http.client.HTTPConnection] = field(default_factory=list)

    def client(self) -> http.client.HTTPConnection:
        """Another one."""
        self.clients.append(http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=WITHIN_S))
        return self.clients[-1]

    def commits(self) -> Commits:
        """Of the checkpoint `c`."""
        return Commits(proxy=self.proxy, dialect=S3, prefix="b/c/")


class Threads(ThreadingHTTPServer):
    """Waits for nobody when it ends."""

    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that is gone is none."""


@pytest.fixture
def stage() -> Iterator[Stage]:
    kind = type("Own", (Store,), {"kept": {}, "asked": []})
    with Threads(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        proxy = Proxy("127.0.0.1", server.server_address[1], what="a store")
        proxy.start()
        made = Stage(kind, proxy)
        try:
            yield made
        finally:
            for client in made.clients:
                client.close()
            proxy.close()
            server.shutdown()
            thread.join()
    proxy.check()


def said(
    client: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, source: str = ""
) -> tuple[int, bytes]:
    client.request(method, path, body=body, headers={S3.copy_source: source} if source else {})
    with client.getresponse() as answer:
        return answer.status, answer.read()


def test_one_connection_serves_many_requests(stage: Stage) -> None:
    client = stage.client()
    big = os.urandom(3_000_000)
    assert said(client, "PUT", "/b/big", big) == (200, b"")
    assert said(client, "HEAD", "/b/big") == (200, b"")
    assert said(client, "GET", "/b/big") == (200, big)
    client.request("PUT", "/b/chunked", body=iter([b"abc", b"d" * 70_000]), encode_chunked=True)
    with client.getresponse() as answer:
        assert (answer.status, answer.read()) == (200, b"")
    assert stage.store.kept["/b/chunked"] == b"abc" + b"d" * 70_000
    assert said(client, "DELETE", "/b/big") == (204, b"")
    assert said(client, "GET", "/b/big") == (404, b"")


def raw(stage: Stage) -> socket.socket:
    return socket.create_connection(("127.0.0.1", stage.proxy.port), timeout=WITHIN_S)


def test_a_client_that_waits_for_100_gets_it_before_it_sends_its_body(stage: Stage) -> None:
    with raw(stage) as client:
        client.sendall(b"PUT /b/k HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert client.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"abc")
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert stage.store.kept == {"/b/k": b"abc"}


def test_two_requests_at_once_are_answered_in_their_order(stage: Stage) -> None:
    stage.store.kept["/b/1"], stage.store.kept["/b/2"] = b"one", b"two"
    with raw(stage) as client:
        client.sendall(b"GET /b/1 HTTP/1.1\r\n\r\nGET /b/2 HTTP/1.1\r\nConnection: close\r\n\r\n")
        got = b""
        while data := client.recv(4096):
            got += data
    assert got.index(b"one") < got.index(b"two")


def test_a_request_that_breaks_off_breaks_off_for_the_server_too() -> None:
    sent, got = b"PUT /b/k HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc", b""
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxy = Proxy("127.0.0.1", server.getsockname()[1], what="a store")
        proxy.start()
        try:
            with socket.create_connection(("127.0.0.1", proxy.port), timeout=WITHIN_S) as client:
                client.sendall(sent)
                there, _ = server.accept()
            with there:
                there.settimeout(WITHIN_S)
                while data := there.recv(4096):
                    got += data
        finally:
            proxy.close()
    assert got == sent


def asked_later(stage: Stage, path: str) -> None:
    said(stage.client(), "GET", path)


def test_a_server_that_is_away_is_no_answer_and_no_failure_of_the_proxy(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        away = taken.getsockname()[1]
    proxy = Proxy("127.0.0.1", away, what="nobody")
    proxy.start()
    try:
        # Whoever is slow to connect may be told so before it has sent anything.
        with (
            pytest.raises(ConnectionError),
            socket.create_connection(("127.0.0.1", proxy.port), timeout=WITHIN_S) as client,
        ):
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert not client.recv(1)
            raise ConnectionError("closed")
        proxy.check()
    finally:
        proxy.close()


def test_an_answer_that_breaks_off_breaks_off_for_the_client_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxy = Proxy("127.0.0.1", server.getsockname()[1], what="a store")
        proxy.start()

        def answer() -> None:
            there, _ = server.accept()
            with there:
                there.recv(4096)
                there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")

        thread = threading.Thread(target=answer)
        thread.start()
        client = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=WITHIN_S)
        try:
            client.request("GET", "/")
            with client.getresponse() as found, pytest.raises(http.client.IncompleteRead):
                found.read()
        finally:
            client.close()
            thread.join()
            proxy.close()


def test_a_proxy_that_ends_leaves_no_socket_and_no_thread(stage: Stage) -> None:
    client = stage.client()
    said(client, "GET", "/b/k")
    stage.proxy.close()
    stage.proxy.close()
    assert not any(thread.name == "proxy to a store" for thread in threading.enumerate())
    with pytest.raises(OSError):
        said(client, "GET", "/b/k")
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", stage.proxy.port), timeout=WITHIN_S).close()


def test_a_port_that_somebody_has_is_said(stage: Stage) -> None:
    second = Proxy("127.0.0.1", 1, what="a store")
    with pytest.raises(StackError, match=f"port {stage.proxy.port} was asked for the proxy to a store; .*in use"):
        second.start(stage.proxy.port)
    second.close()


# What is held.


def in_thread(ask: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Ask without waiting for the answer; an error is kept as it is."""
    out: list[object] = []

    def run() -> None:
        try:
            out.append(ask())
        except (OSError, http.client.HTTPException) as failure:
            out.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, out


TEMPORARY, COMMIT = "/b/c/q/commits/.3.0a-b.tmp", "/b/c/q/commits/3"
H = TypeVar("H", Held, HeldRequest)


def copies(stage: Stage) -> None:
    """What a rename does before it deletes."""
    client = stage.client()
    assert said(client, "PUT", TEMPORARY, b"v1")[0] == 200
    assert said(client, "PUT", "/b/c/q/commits/3", source=TEMPORARY[1:])[0] == 200


@dataclass
class First:
    """Wants the first request with this method and path."""

    method: str
    path: str

    def wants(self, exchange: Exchange) -> bool:
        return (exchange.method, exchange.target) == (self.method, self.path)


@contextlib.contextmanager
def held(
    stage: Stage, ask: Callable[[http.client.HTTPConnection], object]
) -> Iterator[tuple[Held, list[object], threading.Thread, http.client.HTTPConnection]]:
    """A request that is held, and its answer once there is one."""
    with stage.proxy.armed(First("PUT", COMMIT)) as hold, asked(stage, ask, lambda: hold.held) as found:
        yield found


@contextlib.contextmanager
def asked(
    stage: Stage, ask: Callable[[http.client.HTTPConnection], object], found: Callable[[], H | None]
) -> Iterator[tuple[H, list[object], threading.Thread, http.client.HTTPConnection]]:
    """The same of what is `found`."""
    client = stage.client()
    thread, out = in_thread(lambda: ask(client))
    try:
        request = until("a request to be held", found, within_s=WITHIN_S)
        assert request is not None
        yield request, out, thread, client
    finally:
        if (late := found()) is not None:
            late.let_go(drop=False)
        thread.join(WITHIN_S)
        assert not thread.is_alive()


def deletes(client: http.client.HTTPConnection) -> tuple[int, bytes]:
    return said(client, "DELETE", TEMPORARY)


def puts(client: http.client.HTTPConnection) -> tuple[int, bytes]:
    return said(client, "PUT", "/b/c/q/commits/3", b"v1")


def test_the_deletion_after_a_copy_is_held_and_goes_on(stage: Stage) -> None:
    with stage.commits().armed(lambda place, number: (place, number) == ("q", 3)) as found:
        copies(stage)
        with asked(stage, deletes, found) as (request, out, thread, _):
            assert {TEMPORARY, COMMIT} == stage.store.kept.keys()
            assert f"DELETE {TEMPORARY}" not in stage.store.asked
            assert request.rename[:4] == ("q", 3, TEMPORARY[1:], COMMIT[1:])
            assert "the copy to b/c/q/commits/3 before it had been answered with status 200" in request.description
            assert "nothing of it had been sent on, and it was held" in request.description
            request.let_go(drop=False)
            thread.join(WITHIN_S)
            assert out == [(204, b"")]
    assert request.held.state is State.SENT and not request.early
    assert "it was sent on afterwards: let go" in request.description
    assert TEMPORARY not in stage.store.kept


@pytest.mark.parametrize("body", [b"v1", b"v" * 2_000_000], ids=["with its head", "larger than any buffer"])
def test_a_request_whose_client_dies_meanwhile_never_reaches_the_store(stage: Stage, body: bytes) -> None:
    with held(stage, lambda client: said(client, "PUT", COMMIT, body)) as (request, _, _, client):
        assert client.sock is not None
        client.sock.shutdown(socket.SHUT_RDWR)
        request.let_go(drop=False)
        assert (request.state, request.why) == (State.DROPPED, "its client is gone")
    asked_later(stage, "/b/c/q/commits/3")
    assert stage.store.asked == ["GET /b/c/q/commits/3"]
    assert stage.store.kept == {}


CLIENT = """
import http.client, sys
client = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
client.request("PUT", "/b/c/q/commits/3", body=b"v1")
client.getresponse()
"""


@pytest.mark.subprocess
def test_that_of_a_process_that_is_killed_is_dropped_though_nobody_says_so(stage: Stage) -> None:
    process = subprocess.Popen([sys.executable, "-c", CLIENT, str(stage.proxy.port)])
    try:
        with stage.proxy.armed(First("PUT", COMMIT)) as hold:
            request = until("a request to be held", lambda: hold.held, within_s=WITHIN_S)
        assert request is not None
        process.send_signal(signal.SIGKILL)
        process.wait(WITHIN_S)
        request.let_go(drop=False)
    finally:
        process.kill()
        process.wait(WITHIN_S)
    assert (request.state, request.why) == (State.DROPPED, "its client is gone")
    asked_later(stage, "/b/c/q/commits/3")
    assert stage.store.kept == {}


def test_that_of_a_dead_driver_is_dropped_even_if_somebody_has_its_socket(stage: Stage) -> None:
    with held(stage, puts) as (request, out, thread, _):
        request.let_go(drop=True)
        thread.join(WITHIN_S)
        # A body that nobody has read by then makes the end a reset; RemoteDisconnected is one as well.
        assert isinstance(out[0], ConnectionResetError)
    assert request.state is State.DROPPED
    assert stage.store.kept == {}


def test_one_that_nobody_lets_go_goes_on_and_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "HOLD_S", 0.2)
    with held(stage, puts) as (request, out, thread, _):
        thread.join(WITHIN_S)
        assert out == [(200, b"")]
        assert (request.early, request.why) == (True, "it was not let go in 0.2 s")


def test_a_proxy_that_ends_drops_what_it_holds(stage: Stage) -> None:
    with held(stage, puts) as (request, out, thread, _):
        stage.proxy.close()
        thread.join(WITHIN_S)
        assert isinstance(out[0], Exception)
        request.let_go(drop=False)
    assert (request.state, request.why) == (State.DROPPED, "the proxy ended")
    assert stage.store.kept == {}


def test_a_server_that_closes_the_idle_connection_meanwhile_is_asked_by_another(stage: Stage) -> None:
    stage.store.idle_s = 0.3
    opened: list[float] = []

    def first_something_else(client: http.client.HTTPConnection) -> tuple[int, bytes]:
        said(client, "GET", "/b/other")
        opened.append(monotonic())
        return puts(client)

    with held(stage, first_something_else) as (request, out, thread, _):
        until("the server to be tired of it", lambda: monotonic() - opened[0] > 1.0, within_s=WITHIN_S)
        assert out == []
        request.let_go(drop=False)
        thread.join(WITHIN_S)
        assert out == [(200, b"")]
    assert stage.store.kept == {"/b/c/q/commits/3": b"v1"}


def test_others_pass_while_one_is_held(stage: Stage) -> None:
    with held(stage, puts) as (request, out, _, _):
        other = stage.client()
        assert said(other, "PUT", "/b/c/q/commits/4", b"v1")[0] == 200
        assert said(other, "PUT", "/b/c/q/commits/3", b"another")[0] == 200
        assert out == []
        request.let_go(drop=True)


def test_nothing_is_held_that_is_no_part_of_the_commit(stage: Stage) -> None:
    client = stage.client()
    with stage.commits().armed(lambda *_: True) as found:
        # A temporary file that was never copied, one that was copied elsewhere, one whose copy failed.
        said(client, "PUT", "/b/c/commits/.1.x.tmp", b"")
        said(client, "DELETE", "/b/c/commits/.1.x.tmp")
        said(client, "PUT", "/b/c/commits/.2.x.tmp", b"")
        said(client, "PUT", "/b/c/commits/5", source="b/c/commits/.2.x.tmp")
        said(client, "DELETE", "/b/c/commits/.2.x.tmp")
        said(client, "DELETE", "/b/c/commits/3")
        # What is renamed in another log, in another checkpoint, or copied in parts.
        for folder, more in (("c/offsets", ""), ("other/commits", ""), ("c/commits", "?partNumber=1")):
            said(client, "PUT", f"/b/{folder}/.3.x.tmp", b"")
            said(client, "PUT", f"/b/{folder}/3{more}", source=f"b/{folder}/.3.x.tmp")
            said(client, "DELETE", f"/b/{folder}/.3.x.tmp")
        assert found() is None


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("b/c/commits/3", Name("", 3, temporary=False)),
        ("b/c/q/r/commits/.12.0a-b.tmp", Name("q/r", 12, temporary=True)),
        ("b/c/commits/..12.0a-b.tmp.crc", None),
        ("b/c/commits/³", None),
        ("b/c/offsets/3", None),
        ("b/cc/commits/3", None),
        ("b/c/commits", None),
    ],
)
def test_what_a_key_says(key: str, name: Name | None) -> None:
    assert named(key, "b/c/") == name


@pytest.mark.parametrize(
    ("reads", "method", "target", "headers", "operation"),
    [
        (S3, "PUT", "/b/r/commits/3", {}, None),
        (S3, "DELETE", "/b/r/.3.a%20b.tmp?x-id=DeleteObject", {}, Operation("b/r/.3.a b.tmp")),
        (
            S3, "PUT", "/b/r/3", {"x-amz-copy-source": "/b/r%2F.3.tmp?versionId=1"},
            Operation("b/r/3", "b/r/.3.tmp"),
        ),
        (S3, "DELETE", "/b/r/.3.tmp", {}, Operation("b/r/.3.tmp")),
        (S3, "PUT", "/b/r/3?partNumber=1&uploadId=x", {}, None),
        (S3, "POST", "/b?delete", {}, None),
        (S3, "HEAD", "/b/r/3", {}, None),
        (AZURE, "PUT", "/a/c/r/3?timeout=90", {}, None),
        (
            AZURE, "PUT", "/a/c/r/3?timeout=90", {"x-ms-copy-source": "http://127.0.0.1:10000/a/c/r/.3.x%20y.tmp"},
            Operation("a/c/r/3", "a/c/r/.3.x y.tmp"),
        ),
        (AZURE, "DELETE", "/a/c/r/.3.tmp", {}, Operation("a/c/r/.3.tmp")),
        (AZURE, "PUT", "/a/c/r/3?comp=metadata&timeout=90", {}, None),
        (AZURE, "GET", "/a/c?restype=container&comp=list", {}, None),
    ],
)  # fmt: skip
def test_what_a_request_asks_for(
    reads: Dialect, method: str, target: str, headers: dict[str, str], operation: Operation | None
) -> None:
    assert reads.operation(Exchange(method, target, headers)) == operation


BUSY = """
import sys, threading
from harness.remote.proxy.server import Proxy
proxy = Proxy("127.0.0.1", int(sys.argv[1]), what="a store")
proxy.start()
print(proxy.port, flush=True)
threading.Event().wait(600)
"""


@pytest.mark.subprocess
def test_a_proxy_goes_with_its_process(stage: Stage) -> None:
    stage.store.kept["/b/k"] = b"v1"
    to = str(stage.proxy._to[1])
    root = str(Path(__file__).parents[1])
    process = subprocess.Popen([sys.executable, "-c", BUSY, to], stdout=subprocess.PIPE, cwd=root)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
        stage.clients.append(client)
        assert said(client, "GET", "/b/k") == (200, b"v1")
    finally:
        process.kill()
        process.wait(WITHIN_S)
        assert process.stdout is not None
        process.stdout.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S).close()


def test_a_mistake_of_ours_is_told(stage: Stage) -> None:
    class Wrong:
        def wants(self, exchange: Exchange) -> bool:
            raise ValueError("what?")

    client = stage.client()
    with stage.proxy.armed(Wrong()), pytest.raises((OSError, http.client.HTTPException)):
        puts(client)
    until("it to be told", lambda: stage.proxy._failure, within_s=WITHIN_S)
    with pytest.raises(StackError, match="the proxy to a store failed: ValueError"):
        stage.proxy.check()
    stage.proxy._failure = None


def test_a_connection_that_is_cancelled_while_it_ends_closes_its_sockets(stage: Stage) -> None:
    """As where a proxy ends at that moment."""
    sockets: list[socket.socket] = []

    async def ended(near: socket.socket, port: int) -> None:
        made = Connection(near, ("127.0.0.1", port), stage.proxy)
        task = asyncio.create_task(made.run())
        while made._answering is None:
            await asyncio.sleep(0)
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        sockets.extend(each for each in (near, made._server) if each is not None)

    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        asyncio.run(ended(listener.accept()[0], server.getsockname()[1]))
    assert [each.fileno() for each in sockets] == [-1, -1]
