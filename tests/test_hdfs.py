"""HDFS as two processes: what a run is given, what is left after a kill of each, safe mode."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.component import COMPONENTS, KeepsCheckpoints
from harness.components.hdfs.address import HdfsThere
from harness.components.hdfs.folder import HdfsFolder
from harness.components.hdfs.process import Hdfs
from harness.errors import StackError, UsageError
from harness.machine import java
from harness.remote import Gone
from harness.remote.http import Refused
from harness.session.session import Session
from tests.provided import running

stack = pytest.mark.stack


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    logs = tmp_path_factory.mktemp("logs")
    with Session() as session, running(Hdfs(session, java.find(), logs=logs)) as made:
        yield made


@pytest.fixture
def own(server: Hdfs, request: pytest.FixtureRequest) -> Iterator[HdfsFolder]:
    run = f"run-{abs(hash(request.node.name))}"
    made = server.provide(run, {"": {"checkpoint": True}})[""]
    kind = COMPONENTS["hdfs"]
    assert isinstance(kind, KeepsCheckpoints)
    assert kind.checkpoints(made).url == made.filled()["checkpoint"] == f"{made.filled()['hdfs.path']}/checkpoint"
    yield made.at
    server.drop(run, [""])
    assert made.at.entries("") == []
    server.drop(run, [""])


@stack
def test_what_is_written_is_listed_read_and_deleted(own: HdfsFolder) -> None:
    own.write("deep/er/a file", b"one")
    (before,) = own.entries("deep/er")
    assert (before.name, before.folder, before.size) == ("a file", False, 3)
    own.write("deep/er/a file", b"another")
    (after,) = own.entries("deep/er")
    assert own.read("deep/er/a file") == b"another"
    assert after.stamp != before.stamp
    assert [entry.name for entry in own.entries("deep") if entry.folder] == ["er"]
    own.delete("deep/er")
    assert own.read("deep/er/a file") is None
    assert own.entries("no/such/folder") == []


@stack
def test_what_was_acknowledged_is_there_after_a_kill_of_the_namenode(server: Hdfs, own: HdfsFolder) -> None:
    own.write("kept", b"one")
    server.namenode.stop()
    server.check()
    with pytest.raises(StackError):
        own.entries("")
    server.namenode.start()
    assert own.read("kept") == b"one"
    own.write("kept", b"two")


@stack
def test_without_its_datanode_names_are_there_and_no_file(server: Hdfs, own: HdfsFolder) -> None:
    own.write("kept", b"one")
    server.datanode.stop()
    assert [entry.name for entry in own.entries("")] == ["kept"]
    with pytest.raises(StackError):
        own.write("more", b"two")
    with pytest.raises(StackError) as unread:
        own.read("kept")
    assert not isinstance(unread.value, Gone), "it comes back"
    server.datanode.start()
    assert own.read("kept") == b"one"


@stack
def test_a_file_whose_blocks_are_lost_is_there_by_name_alone(server: Hdfs, own: HdfsFolder) -> None:
    run = own.path.split("/")[2]
    assert server.blocks(run) == 0
    own.write("kept", b"one")
    own.write("deep/er/blk_1", b"")
    server.files.create("/elsewhere", b"of nobody's")
    assert (server.blocks(run), server.blocks("another")) == (1, 0)
    server.lose_blocks()
    assert server.blocks(run) == 0
    assert [entry.name for entry in own.entries("")] == ["deep", "kept"]
    with pytest.raises(Gone):
        own.read("kept")
    own.write("kept", b"two")
    assert own.read("kept") == b"two"
    assert server.blocks(run) == 1


@stack
def test_safe_mode_refuses_changes_until_it_is_left(server: Hdfs, own: HdfsFolder) -> None:
    own.write("kept", b"one")
    server.safe_mode(on=True)
    try:
        assert own.read("kept") == b"one"
        with pytest.raises(Refused) as refused:
            own.delete("kept")
        assert refused.value.kind == "SafeModeException"
    finally:
        server.safe_mode(on=False)
    own.delete("kept")


@stack
def test_another_process_finds_the_same_files(server: Hdfs, own: HdfsFolder) -> None:
    own.write("kept", b"one")
    there = HdfsThere(server.lent(), ours=True)
    assert HdfsFolder(there.files, there.scheme, own.path).read("kept") == b"one"
    assert there.describe()["version"] == server.describe()["version"]


@pytest.mark.parametrize(
    "address",
    [
        "hdfs://namenode",
        "hdfs://namenode:8020",
        "namenode:8020?http=namenode:9870",
        "hdfs://namenode:99999?http=namenode:9870",
        "hdfs://namenode:8020?http=namenode:65536",
        "hdfs://namenode:0?http=namenode:9870",
        "",
    ],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="write hdfs://HOST:PORT"):
        HdfsThere(address)


def test_a_namenode_that_is_not_there_is_said_so() -> None:
    there = HdfsThere("hdfs://127.0.0.1:1?http=127.0.0.1:1")
    with pytest.raises(StackError, match=r"asked HDFS at 127\.0\.0\.1:1 to GET"):
        HdfsFolder(there.files, there.scheme, "/any").entries("")
