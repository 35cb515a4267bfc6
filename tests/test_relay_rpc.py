"""The relay in front of a NameNode: every byte passes as it came, and the call that is wanted is held, no other one."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.components.hdfs.requests import operation
from harness.components.hdfs.rpc import CALL_MAX, FRAME_MAX, RPC, Calls, called, fields, varint
from harness.remote.relay import exchange
from harness.remote.relay.commits import TO_HDFS, Commits, HeldRequest, Operation, Part
from harness.remote.relay.exchange import Exchange, State
from harness.remote.relay.framing import Reader
from harness.remote.relay.server import Relay
from harness.wait import until
from tests import hadoop_rpc as hadoop

WITHIN_S = 20.0
ROOT = "/onceproof/r/files/checkpoint"
UUID = "0a-b"


def temporary(log: str, batch: int, place: str = "") -> str:
    return f"{ROOT}{place}/{log}/.{batch}.{UUID}.tmp"


def final(log: str, batch: int, place: str = "") -> str:
    return f"{ROOT}{place}/{log}/{batch}"


# What is read.

PATHS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).map(lambda name: f"/{name}")
Told = tuple[str, str, dict[str, str]]


@st.composite
def frames(draw: st.DrawFn) -> tuple[bytes, list[Told]]:
    """A frame that a client may send, and what is to be read of it."""
    path, to, number = draw(PATHS), draw(PATHS), draw(st.integers(0, 1 << 30))
    method = draw(st.sampled_from(["rename", "rename2"]))
    junk = draw(st.binary(max_size=60))
    calls: list[Callable[[], tuple[bytes, list[Told]]]] = [
        lambda: (hadoop.create(path, number), [("create", path, {})]),
        lambda: (hadoop.rename(path, to, number, method=method), [(method, path, {"to": to})]),
        lambda: (hadoop.call("getFileInfo", (1, path), number=number), []),
        lambda: (hadoop.call("create", (1, path), number=number, protocol="another.Protocol"), []),
        lambda: (hadoop.call("delete", (1, path), (2, 1), number=number), []),
        lambda: (hadoop.context(), []),
        lambda: (hadoop.negotiation(), []),
        lambda: (hadoop.ping(), []),
        lambda: (hadoop.framed(junk), []),
        lambda: (hadoop.framed(hadoop.header(number) + junk), []),
        lambda: (hadoop.framed(hadoop.header(number) + bytes(CALL_MAX) + junk), []),
    ]
    return draw(st.sampled_from(calls))()


@dataclass(frozen=True)
class Passed:
    """What a reader passed on, and the calls that it read."""

    data: bytes
    calls: list[Told]
    blind: bool


def passed(reader: Reader, parts: list[bytes]) -> Passed:
    pieces = [piece for part in parts for piece in reader.take(part)]
    heads = [(head.first, head.second, head.headers) for head in (piece.head for piece in pieces) if head is not None]
    return Passed(b"".join(piece.data for piece in pieces) + reader.rest(), heads, reader.blind)


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({min(each, len(data)) for each in at})
    return [data[low:high] for low, high in zip([0, *places], [*places, len(data)], strict=True)]


CUTS = st.lists(st.integers(0, 3000), max_size=12)


@given(st.lists(frames(), max_size=6), CUTS, st.sampled_from([hadoop.NO_LOGIN, hadoop.SASL]))
def test_each_call_of_a_connection_is_read_and_passes_unchanged(
    sent: list[tuple[bytes, list[Told]]], at: list[int], login: int
) -> None:
    wire = hadoop.preamble(login) + b"".join(frame for frame, _ in sent)
    said = passed(Calls(), cut(wire, at))
    assert said.data == wire
    assert not said.blind
    assert said.calls == [told for _, read in sent for told in read]


CONNECTION = b"".join(
    [
        hadoop.preamble(),
        hadoop.context(),
        hadoop.call("getFileInfo", (1, ROOT), number=0),
        hadoop.create(temporary("offsets", 3), 1),
        hadoop.rename(temporary("offsets", 3), final("offsets", 3), 2),
        hadoop.ping(),
        hadoop.create(temporary("commits", 3), 3),
        hadoop.rename(temporary("commits", 3), final("commits", 3), 4, method="rename"),
    ]
)
CALLS: list[Told] = [
    ("create", temporary("offsets", 3), {}),
    ("rename2", temporary("offsets", 3), {"to": final("offsets", 3)}),
    ("create", temporary("commits", 3), {}),
    ("rename", temporary("commits", 3), {"to": final("commits", 3)}),
]


def test_a_connection_that_is_cut_anywhere_passes_unchanged_and_is_read_alike() -> None:
    for at in range(len(CONNECTION) + 1):
        assert passed(Calls(), [CONNECTION[:at], CONNECTION[at:]]) == Passed(CONNECTION, CALLS, blind=False), at
    one_by_one = [CONNECTION[at : at + 1] for at in range(len(CONNECTION))]
    assert passed(Calls(), one_by_one) == Passed(CONNECTION, CALLS, blind=False)


def test_a_connection_that_ends_anywhere_has_passed_what_came() -> None:
    for at in range(len(CONNECTION)):
        assert passed(Calls(), [CONNECTION[:at]]).data == CONNECTION[:at], at


@given(st.integers(0, 2000))
def test_a_call_is_passed_only_once_it_is_whole(at: int) -> None:
    frame, reader = hadoop.create(temporary("offsets", 3)), Calls()
    assert [*reader.take(hadoop.preamble())]
    assert [*reader.take(frame[: min(at, len(frame) - 1)])] == []


@given(st.lists(st.binary(max_size=40), max_size=6), st.booleans())
def test_whatever_comes_passes_unchanged(parts: list[bytes], begun: bool) -> None:
    wire = [hadoop.preamble(), *parts] if begun else parts
    assert passed(Calls(), wire).data == b"".join(wire)
    assert passed(RPC.answers(lambda head: False), parts) == Passed(b"".join(parts), [], blind=False)


@pytest.mark.parametrize(
    "wire",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"hrpc\x08\x00\x00",
        b"hrpc\x09\x00\x51",
        hadoop.preamble() + (FRAME_MAX + 1).to_bytes(4) + b"abc",
        hadoop.preamble() + b"\xff\xff\xff\xff",
    ],
    ids=["HTTP", "another version", "another login", "a frame that is too long", "a length below zero"],
)
def test_what_is_no_such_connection_is_not_read_on(wire: bytes) -> None:
    whole = wire + hadoop.create(temporary("offsets", 3))
    assert passed(Calls(), [whole]) == Passed(whole, [], blind=True)


def test_a_long_frame_passes_as_it_comes() -> None:
    reader, size = Calls(), FRAME_MAX
    assert [*reader.take(hadoop.preamble())]
    assert b"".join(piece.data for piece in reader.take(size.to_bytes(4) + b"abc")) == size.to_bytes(4) + b"abc"
    assert not reader.blind


BODY = hadoop.create("/p")[4:]
CALL = BODY[len(hadoop.header(0)) :]
"""What follows the header of a call."""


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        BODY[:-1],
        BODY + b"\x00",
        hadoop.header(0, kind=1) + CALL,
        hadoop.header(0, operation=2) + CALL,
        hadoop.header(-2) + CALL,
        hadoop.call("create", (1, 7))[4:],
        hadoop.call("create", (2, "/p"))[4:],
        hadoop.call("create", (1, b"\xff"))[4:],
        hadoop.call("rename", (1, "/p"))[4:],
        hadoop.call("", (1, "/p"))[4:],
    ],
    ids=[
        "nothing", "it breaks off", "more behind it", "another engine", "a connection that ends", "no number of a call",
        "a number for a path", "no path", "no text", "one path of two", "no method",
    ],
)  # fmt: skip
def test_what_is_no_whole_call_is_none(frame: bytes) -> None:
    assert called(frame) is None


def test_a_call_is_read() -> None:
    assert called(BODY) is not None


@given(st.binary(max_size=200))
def test_no_frame_is_an_error(data: bytes) -> None:
    called(data)
    called(hadoop.header(1) + data)


def test_fields_of_every_form_are_passed_over_by_their_length() -> None:
    data = hadoop.message((1, 300), (2, "a")) + b"\x19" + bytes(8) + b"\x25" + bytes(4)
    assert fields(data) == {1: 300, 2: b"a", 3: bytes(8), 4: bytes(4)}


@pytest.mark.parametrize("data", [b"\x0b", b"\x0c", b"\x0e", b"\x00\x00", b"\x08", b"\x12\x05a", b"\x25\x00"])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        fields(data)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80" * 10 + b"\x01", b"\xff" * 9 + b"\x02"])
def test_what_is_no_number_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        varint(data, 0)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=5))
def test_a_number_is_read_whatever_follows_it(number: int, rest: bytes) -> None:
    data = hadoop.varint(number)
    assert varint(data + rest, 0) == (number, len(data))


# What it asks for.


@pytest.mark.parametrize(
    ("method", "path", "to", "wanted"),
    [
        ("create", "/c/offsets/.3.x.tmp", "", Operation(Part.CREATE_OFFSETS, "c/offsets/.3.x.tmp")),
        ("create", "/c/commits/.3.x.tmp", "", Operation(Part.CREATE_COMMITS, "c/commits/.3.x.tmp")),
        ("rename2", "/c/offsets/.3.x.tmp", "/c/offsets/3", (Part.RENAME_OFFSETS, "c/offsets/3", "c/offsets/.3.x.tmp")),
        ("rename", "/c/commits/.3.x.tmp", "/c/commits/3", (Part.RENAME_COMMITS, "c/commits/3", "c/commits/.3.x.tmp")),
        ("create", "/c/sources/0/.0.x.tmp", "", None),
        ("create", "/offsets", "", None),
        ("create", "", "", None),
        ("rename2", "/c/offsets/3", "/c/.Trash/3", None),
    ],
)
def test_what_a_call_asks_of_a_checkpoint(method: str, path: str, to: str, wanted: Operation | None) -> None:
    assert operation(Exchange(method, path, {"to": to} if to else {})) == wanted


# What is held.


class NameNode:
    """Keeps the bytes of each connection, and answers none."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.there: list[socket.socket] = []
        self.got: list[bytearray] = []
        self.thread = threading.Thread(target=self._accepts)
        self.readers: list[threading.Thread] = []
        self.thread.start()

    def _accepts(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                there, _ = self.listener.accept()
                self.there.append(there)
                self.got.append(bytearray())
                self.readers.append(threading.Thread(target=self._reads, args=(there, self.got[-1])))
                self.readers[-1].start()

    def _reads(self, there: socket.socket, to: bytearray) -> None:
        with contextlib.suppress(OSError):
            while data := there.recv(1 << 16):
                to += data

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(WITHIN_S)
        for there in self.there:
            with contextlib.suppress(OSError):
                there.shutdown(socket.SHUT_RDWR)
            there.close()
        for reader in self.readers:
            reader.join(WITHIN_S)


@dataclass
class Stage:
    """A NameNode, a relay in front of it, and clients of the relay."""

    server: NameNode
    relay: Relay
    ends: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def client(self) -> hadoop.Client:
        return self.ends.enter_context(hadoop.client(self.relay.port))

    def commits(self) -> Commits:
        return Commits(relay=self.relay, reads=operation, prefix=f"{ROOT[1:]}/", server="the NameNode")

    def has(self, data: bytes, *, connection: int = 0) -> bool:
        return len(self.server.got) > connection and data in self.server.got[connection]


@pytest.fixture
def stage() -> Iterator[Stage]:
    server = NameNode()
    relay = Relay("127.0.0.1", server.listener.getsockname()[1], what="the NameNode", speech=RPC)
    relay.start()
    made = Stage(server, relay)
    try:
        yield made
    finally:
        made.ends.close()
        relay.close()
        server.close()
    relay.check()


BEGIN = hadoop.preamble() + hadoop.context()
"""What a client sends before its first call."""


def wanted(place: str, batch: int) -> bool:
    return (place, batch) == ("q", 3)


SENT = {
    Part.CREATE_OFFSETS: hadoop.create(temporary("offsets", 3, "/q")),
    Part.RENAME_OFFSETS: hadoop.rename(temporary("offsets", 3, "/q"), final("offsets", 3, "/q")),
    Part.CREATE_COMMITS: hadoop.create(temporary("commits", 3, "/q")),
    Part.RENAME_COMMITS: hadoop.rename(temporary("commits", 3, "/q"), final("commits", 3, "/q"), method="rename"),
}


@contextlib.contextmanager
def held(stage: Stage, part: Part, client: hadoop.Client) -> Iterator[HeldRequest]:
    """The call of a part, which is held."""
    with stage.commits().armed(part, wanted) as found:
        client.sends(SENT[part])
        try:
            request = until("a call to be held", found, within_s=WITHIN_S)
            assert request is not None
            yield request
        finally:
            if (late := found()) is not None:
                late.let_go(drop=False)


def other_calls() -> list[bytes]:
    """All that is not the call of batch 3 of the query `q`, but alike."""
    others = [hadoop.create(temporary(log, 2, "/q")) for log in ("offsets", "commits")]
    others += [hadoop.create(final(log, 3, "/q")) for log in ("offsets", "commits")]
    others += [hadoop.create(temporary(log, 3)) for log in ("offsets", "commits", "sources/0")]
    others += [hadoop.rename(final(log, 3, "/q"), temporary(log, 3, "/q")) for log in ("offsets", "commits")]
    others += [hadoop.rename(temporary("offsets", 2, "/q"), final("offsets", 3, "/q"))]
    others += [hadoop.rename(temporary("offsets", 3), final("offsets", 3, "/q"))]
    others += [hadoop.rename(temporary("commits", 3, "/q"), final("offsets", 3, "/q"))]
    others += [hadoop.call("delete", (1, temporary("offsets", 3, "/q")))]
    others += [hadoop.create(f"/elsewhere/q/offsets/.3.{UUID}.tmp")]
    return others


@pytest.mark.parametrize("part", TO_HDFS)
def test_only_the_call_that_is_asked_for_is_held(stage: Stage, part: Part) -> None:
    client = stage.client()
    others = [*other_calls(), *(SENT[each] for each in TO_HDFS if each is not part)]
    with stage.commits().armed(part, wanted) as found:
        for each in others:
            client.sends(each)
        until("all others", lambda: stage.has(b"".join(others)), within_s=WITHIN_S)
        assert found() is None
    with held(stage, part, client) as request:
        assert (request.part, request.place, request.batch) == (part, "q", 3)
        assert not stage.has(SENT[part])
        request.let_go(drop=False)
        until("it to go on", lambda: stage.has(b"".join(others) + SENT[part]), within_s=WITHIN_S)
    assert request.held.state is State.SENT and not request.early


@given(st.integers(1, 5000))
def test_a_call_is_held_wherever_its_bytes_are_parted(at: int) -> None:
    """Of the watch alone, without a connection."""
    wire = BEGIN + SENT[Part.RENAME_OFFSETS]
    reader, before = Calls(), b""
    for part in cut(wire, [at]):
        for piece in reader.take(part):
            if piece.head is not None:
                found = operation(Exchange(piece.head.first, piece.head.second, piece.head.headers))
                assert found is not None and found.part is Part.RENAME_OFFSETS
                assert before == BEGIN
            before += piece.data
    assert before == wire


def test_a_held_call_waits_and_what_comes_behind_it_on_its_connection(stage: Stage) -> None:
    client, other = stage.client(), stage.client()
    behind = hadoop.call("getFileInfo", (1, "/x"), number=9)
    with held(stage, Part.RENAME_OFFSETS, client) as request:
        client.sends(behind)
        other.sends(behind)
        until("another connection", lambda: stage.has(behind, connection=1), within_s=WITHIN_S)
        assert not stage.has(SENT[Part.RENAME_OFFSETS]) and not stage.has(behind)
        words = f"the rename-offsets request rename2 {ROOT[1:]}/q/offsets/3 was held on its way to the NameNode"
        assert words in request.told and "nothing of it had been sent on, and it was held" in request.told
        request.let_go(drop=False)
        until("both", lambda: stage.has(SENT[Part.RENAME_OFFSETS] + behind), within_s=WITHIN_S)
    assert "it was sent on afterwards: let go" in request.told


def test_a_call_of_a_dead_driver_is_never_done(stage: Stage) -> None:
    client = stage.client()
    with held(stage, Part.CREATE_OFFSETS, client) as request:
        request.let_go(drop=True)
        with pytest.raises(ConnectionError):
            client.answer()
    assert (request.held.state, request.held.why) == (State.DROPPED, "its driver is dead")
    until("what came before", lambda: stage.has(BEGIN), within_s=WITHIN_S)
    assert stage.server.got == [BEGIN]


def test_one_whose_client_is_gone_is_dropped(stage: Stage) -> None:
    client = stage.client()
    with held(stage, Part.CREATE_COMMITS, client) as request:
        client.there.close()
        request.let_go(drop=False)
    assert (request.held.state, request.held.why) == (State.DROPPED, "its client is gone")
    assert not stage.has(SENT[Part.CREATE_COMMITS])


def test_one_whose_server_is_gone_goes_over_no_other_connection(stage: Stage) -> None:
    client = stage.client()
    with held(stage, Part.RENAME_COMMITS, client) as request:
        until("the connection", lambda: stage.server.there, within_s=WITHIN_S)
        stage.server.there[0].shutdown(socket.SHUT_RDWR)
        request.let_go(drop=False)
        with pytest.raises(ConnectionError):
            client.answer()
    assert (request.held.state, request.held.why) == (State.DROPPED, "its server is gone")
    assert len(stage.server.got) == 1


def test_one_that_nobody_lets_go_goes_on_and_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "HOLD_S", 0.2)
    with held(stage, Part.RENAME_OFFSETS, stage.client()) as request:
        until("it to go on", lambda: stage.has(SENT[Part.RENAME_OFFSETS]), within_s=WITHIN_S)
        assert request.early and "nobody had let it go in 0.2 s" in request.told


def test_what_is_no_rpc_passes_the_relay_both_ways(stage: Stage) -> None:
    with socket.create_connection(("127.0.0.1", stage.relay.port), timeout=WITHIN_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        until("it", lambda: stage.has(b"GET / HTTP/1.1\r\n\r\n"), within_s=WITHIN_S)
        stage.server.there[0].sendall(b"It looks like you are making an HTTP request\n")
        assert client.recv(100) == b"It looks like you are making an HTTP request\n"


def test_a_frame_that_is_longer_than_is_kept_back_passes_the_relay(stage: Stage) -> None:
    client, frame = stage.client(), hadoop.framed(hadoop.header(1) + bytes(3 * CALL_MAX))
    client.sends(frame)
    until("all of it", lambda: stage.has(frame), within_s=WITHIN_S)
