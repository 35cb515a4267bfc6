"""The component `s3`: how it is asked, what a run has of it, and what is left after a kill or a run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.checkpoint import listing
from harness.components.s3.address import S3There
from harness.components.s3.process import BUCKET, S3Server
from harness.components.s3.run_prefix import prefix
from harness.components.s3.server import Server
from harness.components.s3.signature import Keys, Request, query, signed
from harness.errors import StackError, UsageError
from harness.machine import jars, java
from harness.remote import checkpoint_listing as remote
from harness.remote.http import Refused
from harness.remote.mirror import Mirror
from harness.remote.objects import Object, ObjectFolder
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.session.session import Session
from harness.spark.beside import Users
from harness.spark.driver_process import Machine, settings
from tests.provided import Own, parts_of, running

KEYS = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
ONE = "<Contents><Key>{key}</Key><Size>3</Size><ETag>&quot;e&quot;</ETag><LastModified>now</LastModified></Contents>"


@pytest.mark.parametrize(
    ("asked", "signature"),
    [
        ({"lifecycle": ""}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ({"prefix": "J", "max-keys": "2"}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_a_signature_is_the_one_that_amazon_documents(asked: dict[str, str], signature: str) -> None:
    request = Request("GET", "/", query(asked))
    headers = signed(request, "examplebucket.s3.amazonaws.com", KEYS, datetime(2013, 5, 24))
    assert headers["Authorization"].endswith(f"Signature={signature}")


def test_the_address_of_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    found = S3There("https://me:pa%2Fss@there:9000/mine")
    assert (found.plain, found.bucket, found.server.keys) == (
        "https://there:9000/mine",
        "mine",
        Keys("me", "pa/ss", "us-east-1"),
    )
    assert S3There(found.address, ours=True).server == found.server
    assert (found.shared, S3There(found.address, ours=True).shared) == (True, False)
    assert "pa/ss" not in repr(found.server)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert S3There("http://me@there/mine").server == Server("there", 80, Keys("me", "secret", "eu-west-1"))


@pytest.mark.parametrize(
    "given",
    [
        "there/mine",
        "https://me:secret@there/",
        "https://there/mine",
        "ftp://me:secret@there/mine",
        "http://me:secret@h/a/b",
        "http://me:secret@[::1/mine",
        "http://me:secret@h:99999/mine",
    ],
)
def test_the_address_of_a_bucket_that_is_none(given: str) -> None:
    with pytest.raises(UsageError, match="--at s3=… must be a bucket's address as https://") as refused:
        S3There(given)
    assert "secret@" not in str(refused.value).replace("SECRET@", "")


def test_no_part_of_a_run_sees_the_objects_of_another() -> None:
    found = [prefix(run, part) for run in ("r1", "r11") for part in ("", "second")]
    assert [a for a in found for b in found if a != b and a.startswith(b)] == []


class Told(BaseHTTPRequestHandler):
    """Answers what the test has laid out, by method and path."""

    answers: dict[str, tuple[int, str]]
    seen: list[str]
    closes = False
    """Whether the connection is closed after an answer, which does not say so: as after some idle seconds."""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.seen.append(self.path)
        status, text = self.answers.get(self.path, (500, "<Error><Code>InternalError</Code></Error>"))
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = self.closes

    do_PUT = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def told() -> Iterator[tuple[Server, type[Told]]]:
    """A server, and what it is to answer."""
    kind = type("Own", (Told,), {"answers": {}, "seen": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as there:
        thread = threading.Thread(target=there.serve_forever)
        thread.start()
        server = Server("127.0.0.1", there.server_address[1], KEYS)
        try:
            yield server, kind
        finally:
            # It is kept, and whoever serves it waits for its end.
            server.close()
            there.shutdown()
            thread.join()


def listed(*keys: str, token: str = "") -> str:
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    named = "".join(ONE.format(key=key) for key in keys)
    named = f"<EncodingType>url</EncodingType>{more}{named}"
    return f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{named}</ListBucketResult>'


def test_a_listing_is_read_to_its_end(told: tuple[Server, type[Told]]) -> None:
    server, kind = told
    first = "/mine?encoding-type=url&list-type=2&prefix=a%2F"
    second = "/mine?continuation-token=t%3D&encoding-type=url&list-type=2&prefix=a%2F"
    kind.answers = {first: (200, listed("a/%C3%BC+1", token="t=")), second: (200, listed("a/2"))}
    assert list(server.listed("mine", "a/")) == [Object("a/ü 1", 3, "e now"), Object("a/2", 3, "e now")]


def test_what_a_server_refuses_and_what_it_cannot_are_told_apart(told: tuple[Server, type[Told]]) -> None:
    server, kind = told
    kind.answers = {
        "/mine/none": (404, "<Error><Code>NoSuchKey</Code></Error>"),
        "/gone/none": (404, "<Error><Code>NoSuchBucket</Code><Message>There is none.</Message></Error>"),
        "/mine/there": (412, "<Error><Code>PreconditionFailed</Code></Error>"),
    }
    assert server.read("mine", "none") is None
    with pytest.raises(Refused, match=r"take mine/there; it said: status 412, PreconditionFailed"):
        server.write("mine", "there", b"")
    with pytest.raises(Refused, match=r"give gone/none; it said: status 404, NoSuchBucket There is none\."):
        server.read("gone", "none")
    with pytest.raises(StackError, match="give mine/other; it could not: status 500, InternalError"):
        server.read("mine", "other")


def test_a_connection_that_the_server_has_closed_is_opened_anew(told: tuple[Server, type[Told]]) -> None:
    server, kind = told
    kind.answers = {"/mine/there": (200, "x")}
    kind.closes = True
    assert [server.read("mine", "there") for _ in range(3)] == [b"x"] * 3
    assert kind.seen == ["/mine/there"] * 3


@pytest.mark.parametrize("page", ["<html>hello</html>", "<br>hello", ""])
def test_another_server_than_one_of_s3_is_said(told: tuple[Server, type[Told]], page: str) -> None:
    server, kind = told
    kind.answers = {"/mine?encoding-type=url&list-type=2&prefix=onceproof%2F": (200, page), "/": (200, page)}
    words = r"asked S3 at http://127\.0\.0\.1:\d+ to {}; it answered '.*', which no S3 does: write the address of an S3"
    there = S3There(f"{server.whole}/mine")
    try:
        with pytest.raises(StackError, match=words.format("list mine/onceproof/")):
            there.describe()
    finally:
        there.close()
    with pytest.raises(StackError, match=words.format("name its buckets")):
        server.buckets()


def test_nobody_there_is_said() -> None:
    with pytest.raises(StackError, match=r"asked S3 at http://127\.0\.0\.1:1 to name its buckets; saw .*refused"):
        Server("127.0.0.1", 1, KEYS).buckets()


@pytest.mark.parametrize("shipped", [None, Path("modules.zip")], ids=["here", "elsewhere"])
def test_what_a_client_buffers_is_gone_with_its_run(tmp_path: Path, shipped: Path | None) -> None:
    own = RunResources(
        run_id="r1", parts={}, spark_master="", spark_home=tmp_path, folder=tmp_path, checkpoint=tmp_path / "checkpoint"
    )
    machine = Machine(java=java.Java(tmp_path, tmp_path, 17, ""), jars=jars.Jars((), (), ""), shipped=shipped)
    found = settings(own, Pipeline(entry="p.py"), machine, 1, Users(pipeline={}))
    # Executors on other machines may have no folder of that path, nor make one.
    assert found.get("spark.hadoop.hadoop.tmp.dir") == (str(tmp_path / "tmp") if shipped is None else None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    logs = tmp_path_factory.mktemp("logs")
    with Session() as session, running(S3Server(session, java.find(), logs=logs)) as made:
        yield made


@pytest.fixture
def own(server: S3Server, request: pytest.FixtureRequest) -> Iterator[Own]:
    with parts_of(server, request) as made:
        yield made


def run_prefix(own: Own) -> ObjectFolder:
    found: ObjectFolder = own["s3"].at
    return found


@pytest.mark.stack
def test_an_object_is_there_under_its_name_after_a_kill(server: S3Server, own: Own) -> None:
    there = run_prefix(own)
    there.write("checkpoint/commits/.0.x y.tmp", b"v1")
    server.stop()
    with pytest.raises(StackError, match=r"give onceproof/.*; saw"):
        there.read("checkpoint/commits/.0.x y.tmp")
    server.start()
    assert there.read("checkpoint/commits/.0.x y.tmp") == b"v1"
    assert [(entry.name, entry.folder) for entry in there.entries("checkpoint")] == [("commits", True)]
    assert [(entry.name, entry.size) for entry in there.entries("checkpoint/commits")] == [(".0.x y.tmp", 2)]
    assert there.entries("nothing") == []


@pytest.mark.stack
def test_a_checkpoint_is_copied_in_the_words_of_spark(own: Own, tmp_path: Path) -> None:
    there = run_prefix(own).below("checkpoint")
    for place in ("metadata", "offsets/0", "commits/.0.x.tmp", "state/0/0/1.delta", "sources/0/0"):
        there.write(place, place.encode())
    mirror = Mirror(there, tmp_path / "checkpoint", scratch=tmp_path / "scratch")
    mirror.copy("")
    # What has its temporary name is on the server alone.
    assert listing(mirror.folder) == {"offsets": (0,), "commits": (), "begun": ()}
    seen = (remote.listing(there, ""), remote.settled(there, ""))
    assert seen == ({"offsets": (0,), "commits": (), "begun": (0,)},) * 2
    assert (mirror.folder / "sources" / "0" / "0").read_bytes() == b"sources/0/0"
    # As a rename does it there: a copy, and a deletion.
    there.write("commits/0", b"v1")
    there.delete("commits/.0.x.tmp")
    mirror.refresh()
    assert listing(mirror.folder) == {"offsets": (0,), "commits": (0,), "begun": ()}
    assert (mirror.folder / "state").is_dir()


@pytest.mark.stack
def test_the_mark_of_a_folder_is_no_file(own: Own) -> None:
    there = run_prefix(own)
    there.write("folder/", b"")
    assert (there.read("folder"), there.read("folder/")) == (None, b"")
    assert [(entry.name, entry.folder) for entry in there.entries("")] == [("folder", True)]
    assert there.entries("folder") == []


@pytest.mark.stack
def test_other_keys_open_nothing(server: S3Server) -> None:
    keys = Keys(server.server.keys.access, "guessed", "us-east-1")
    with pytest.raises(Refused, match="SignatureDoesNotMatch"):
        Server("127.0.0.1", server.port, keys).buckets()


@pytest.mark.stack
def test_a_run_that_ends_leaves_no_object(server: S3Server) -> None:
    first, second = (server.provide(run, {"": {}})[""].at for run in ("r1", "r2"))
    for there in (first, second):
        there.write("a/b", b"")
    server.drop("r1", [""])
    server.drop("r1", [""])
    assert [entry.key for entry in server.server.listed(BUCKET, "")] == ["onceproof/r2/plain/a/b"]
    server.drop("r2", [""])


@pytest.mark.stack
def test_a_run_that_is_to_hold_requests_asks_through_a_proxy_of_its_own(server: S3Server) -> None:
    plain = server.provide("r1", {"": {"checkpoint": True}})[""]
    given = server.provide("r2", {"": {"checkpoint": True, "proxy": True}, "input": {}})
    urls = {each.conf["spark.hadoop.fs.s3a.endpoint"] for each in given.values()}
    proxy = given[""].at.proxy
    assert (plain.conf["spark.hadoop.fs.s3a.endpoint"], urls) == (server.server.url, {proxy.url})
    # It is signed for the proxy's address, and the server is content with that.
    through = Server("127.0.0.1", proxy.port, server.server.keys)
    through.write(BUCKET, "onceproof/r2/plain/a b", b"v1")
    assert given[""].at.read("a b") == b"v1"
    with pytest.raises(Refused, match="SignatureDoesNotMatch"):
        Server("127.0.0.1", proxy.port, Keys(server.server.keys.access, "guessed", "us-east-1")).buckets()
    server.drop("r2", ["", "input"])
    server.drop("r1", [""])
    with pytest.raises(StackError, match="to name its buckets; saw"):
        through.buckets()


@pytest.mark.stack
def test_a_server_that_died_is_told(tmp_path: Path) -> None:
    with Session() as session, running(S3Server(session, java.find(), logs=tmp_path)) as made:
        assert made._process is not None
        made._process.kill()
        made._process.wait(10)
        with pytest.raises(StackError, match="s3 ended with signal 9"):
            made.check()
