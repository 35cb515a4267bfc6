"""What WebHDFS is asked, and what is made of its answers: by a NameNode that is a stub."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.components.hadoop.settings import site
from harness.components.hdfs.address import HdfsThere
from harness.components.hdfs.folder import HdfsFolder
from harness.components.hdfs.webhdfs import WebHdfs
from harness.errors import StackError
from harness.remote.http import Refused

Answer = tuple[int, Any] | None
LISTING = {
    "FileStatuses": {
        "FileStatus": [
            {"pathSuffix": "0", "type": "FILE", "length": 7, "modificationTime": 5, "fileId": 16},
            {"pathSuffix": "sub", "type": "DIRECTORY", "length": 0, "modificationTime": 6, "fileId": 17},
        ]
    }
}


def refusal(kind: str) -> Answer:
    return 403, {"RemoteException": {"exception": kind, "message": "it is so"}}


@contextmanager
def stub(answer: Callable[[str, str, dict[str, str]], Answer]) -> Iterator[HdfsFolder]:
    """A folder whose NameNode, and DataNode, answer so: method, path, parameters to status and body; None hangs up."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _reply(self) -> None:
            place = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(place.query).items()}
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            said = answer(self.command, place.path, asked)
            if said is None:
                self.close_connection = True
                return
            status, body = said
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_DELETE = _reply

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    asking = WebHdfs(f"127.0.0.1:{server.server_port}", user="me")
    try:
        yield HdfsFolder(asking, "hdfs://127.0.0.1:8020", "/onceproof/run/files")
    finally:
        asking.close()
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_listing_names_files_and_folders() -> None:
    seen: list[tuple[str, str, dict[str, str]]] = []

    def answer(*asked: Any) -> Answer:
        seen.append(asked)
        return 200, LISTING

    with stub(answer) as folder:
        file, sub = folder.below("checkpoint").entries("offsets")
    assert seen == [
        (
            "GET",
            "/webhdfs/v1/onceproof/run/files/checkpoint/offsets",
            {"op": "LISTSTATUS", "user.name": "me"},
        )
    ]
    assert (file.name, file.folder, file.size, sub.folder) == ("0", False, 7, True)
    assert file.stamp != sub.stamp


def test_what_is_not_there_is_no_error() -> None:
    with stub(lambda *asked: refusal("FileNotFoundException")) as folder:
        assert folder.entries("offsets") == []
        assert folder.read("offsets/0") is None


@pytest.mark.parametrize("call", [HdfsFolder.entries, HdfsFolder.read, HdfsFolder.delete])
def test_a_refusal_is_told_in_the_words_of_the_namenode(call: Callable[[HdfsFolder, str], object]) -> None:
    with stub(lambda *asked: refusal("SafeModeException")) as folder, pytest.raises(Refused, match="it is so") as said:
        call(folder, "offsets")
    assert said.value.kind == "SafeModeException"


def test_a_file_is_read_from_the_datanode_that_the_namenode_names() -> None:
    with stub(lambda *asked: (200, b"v1")) as datanode:
        where = f"http://{datanode.server.address}/webhdfs/v1/a%20file?op=OPEN"
        with stub(lambda *asked: (200, {"Location": where})) as folder:
            assert folder.read("a file") == b"v1"


def test_a_namenode_that_names_no_datanode_is_said() -> None:
    with stub(lambda *asked: (307, b"")) as folder, pytest.raises(StackError, match="it names no DataNode"):
        folder.read("a file")


def test_a_file_is_written_beside_and_renamed() -> None:
    done: list[str] = []

    def answer(method: str, path: str, asked: dict[str, str]) -> Answer:
        done.append(asked["op"])
        if asked.get("noredirect"):
            return 200, {"Location": f"http://{folder.server.address}{path}?op=DATA"}
        return 200, {"boolean": True}

    with stub(answer) as folder:
        folder.write("in/records", b"one")
    assert done == ["CREATE", "DATA", "DELETE", "RENAME"]


def test_a_rename_that_was_not_done_is_an_error() -> None:
    def answer(method: str, path: str, asked: dict[str, str]) -> Answer:
        if asked.get("noredirect"):
            return 200, {"Location": f"http://{folder.server.address}{path}?op=DATA"}
        return 200, {"boolean": asked["op"] != "RENAME"}

    with stub(answer) as folder, pytest.raises(StackError, match="did not"):
        folder.write("records", b"one")


def test_a_datanode_without_the_block_is_an_error_and_no_empty_file() -> None:
    with stub(lambda *asked: refusal("BlockMissingException")) as folder, pytest.raises(StackError):
        folder.read("offsets/0")


def test_the_blocks_of_a_folder_are_those_that_fsck_lists() -> None:
    told = b"""Connecting to namenode via http://n/fsck?ugi=me&files=1&blocks=1&openforwrite=1&path=%2Fonceproof%2Frun
/onceproof/run/files/0. BP-1:blk_7_1 <dir>
/onceproof/run/files/part-0 3 bytes, replicated: replication=1, 1 block(s):  OK
0. BP-1-127.0.0.1-1:blk_1073741825_1001 len=3 Live_repl=1
/onceproof/run/files/part-1 9 bytes, replicated: replication=1, 2 block(s):  MISSING 1 blocks of total size 9 B
0. BP-1-127.0.0.1-1:blk_1073741826_1002 len=5 MISSING!
1. BP-1-127.0.0.1-1:blk_1073741827_1003 len=4 Live_repl=1
"""
    seen: list[tuple[str, str]] = []

    def answer(method: str, path: str, asked: dict[str, str]) -> Answer:
        seen.append((path, asked["path"]))
        return 200, told

    with stub(answer) as folder:
        assert folder.server.blocks("/onceproof/run") == {f"blk_{number}" for number in range(1073741825, 1073741828)}
    assert seen == [("/fsck", "/onceproof/run")]


def test_a_server_that_hangs_up_is_asked_again_but_not_to_change_something() -> None:
    seen: list[str] = []

    def answer(method: str, path: str, asked: dict[str, str]) -> Answer:
        seen.append(method)
        return (200, LISTING) if len(seen) % 2 else None

    with stub(answer) as folder:
        assert folder.entries("in")
        with pytest.raises(StackError, match="to PUT"):
            folder.write("in/records", b"one")
        assert seen == ["GET", "PUT"]
        seen.clear()
        assert folder.entries("in") and folder.entries("in")
    assert seen == ["GET", "GET", "GET"]


@pytest.mark.parametrize("page", [b"<html>hello</html>", b"\xff\xfe", {"hello": 1}, []])
def test_another_server_than_a_namenode_is_said(page: Any) -> None:
    with stub(lambda *asked: (200, page)) as folder:
        there = HdfsThere(f"hdfs://127.0.0.1:1?http={folder.server.address}")
        with pytest.raises(
            StackError, match=r"asked the NameNode at .* for NameNodeInfo; .*: write the address at which"
        ):
            there.describe()
        if isinstance(page, bytes):
            with pytest.raises(StackError, match=r"asked HDFS at .* for LISTSTATUS of .*, which is no JSON: write"):
                folder.entries("offsets")
        there.close()


def test_settings_are_xml_whatever_is_in_them() -> None:
    assert "<name>a</name><value>x &lt; &amp; y</value>" in site({"a": "x < & y"})
