"""What the agent in Spark reports: which operations are crash points, and who waits for an answer."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness.context import CheckpointEvent
from harness.errors import StackError
from harness.operation import Op, Operation, Side, checkpoint
from harness.run.progress.agent import OPERATION, AgentServer, Event, local, operation, protocol_event
from harness.scenario import CrashPoint

FOLDER = Path("/run/checkpoint")
ANSWER_S = 10.0


def reported(op: str, when: str, path: str) -> Event:
    return {"what": OPERATION, "op": op, "when": when, "path": path, "process": "driver", "waits": True}


def event_of(op: str, when: str, path: Path) -> CheckpointEvent | None:
    done = operation(reported(op, when, str(path)), path)
    assert done is not None
    return protocol_event(done)


@pytest.mark.parametrize(
    ("op", "when", "name", "point"),
    [
        ("rename", "after", "offsets/3", CrashPoint.BATCH_PLANNED),
        ("create", "before", "commits/3", CrashPoint.SINK_COMMITTED),
        ("rename", "after", "commits/3", CrashPoint.BATCH_COMMITTED),
        ("rename", "before", "offsets/3", None),
        ("create", "after", "commits/3", None),
        ("delete", "after", "commits/3", None),
        ("rename", "after", "metadata", None),
        ("rename", "after", "state/0/1/3.delta", None),
    ],
)
def test_an_operation_is_a_crash_point_of_its_batch(op: str, when: str, name: str, point: CrashPoint | None) -> None:
    seen = event_of(op, when, FOLDER / name)
    assert (seen and seen.point) == point
    assert seen is None or (seen.batch, seen.folder) == (3, FOLDER)


def test_where_a_source_begins_is_no_point() -> None:
    seen = event_of("rename", "after", FOLDER / "sources" / "1" / "0")
    assert seen is not None
    assert (seen.point, seen.folder, seen.source) == (None, FOLDER, "1")


@pytest.mark.parametrize("name", ["offsets", "offsets/3", "commits/3", "metadata", "sources/0/0", "state/0/1/3.delta"])
def test_the_checkpoint_of_an_operation(name: str) -> None:
    assert checkpoint(FOLDER / name) == FOLDER


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("commits/3", 3),
        ("offsets/0", 0),
        ("state/0/1/4.delta", 3),
        ("state/0/1/left-keyToNumValues/4.changelog", 3),
        ("state/0/1/4_0c8f.zip", 3),
        ("state/0/_metadata/schema", None),
        ("metadata", None),
    ],
)
def test_the_batch_of_a_file(name: str, batch: int | None) -> None:
    assert Operation(Op.CREATE, Side.BEFORE, FOLDER, name).batch == batch


def test_a_file_is_below_its_folders_alone() -> None:
    done = Operation(Op.CREATE, Side.BEFORE, FOLDER, "state/0/1/4.delta")
    assert [done.below(path) for path in ("state", "state/0", "state/0/1/4.delta", "state/0/1/4", "commits")] == [
        True, True, True, False, False
    ]  # fmt: skip


def test_a_path_of_this_machine() -> None:
    assert local("file:/run/checkpoint/offsets/3") == local("/run/checkpoint/offsets/3") == FOLDER / "offsets" / "3"
    assert local("s3a://bucket/checkpoint/offsets/3") is None
    assert checkpoint(Path("/run/elsewhere")) is None


@pytest.fixture
def heard() -> list[Event]:
    return []


@pytest.fixture(params=["a port", "a file"])
def server(heard: list[Event], request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentServer]:
    def hear(event: Event) -> None:
        heard.append(event)
        if event["what"] == "broken":
            raise OSError("no disk")

    with closing(AgentServer(hear, tmp_path / "a" if request.param == "a file" else None)) as made:
        yield made


def connected(server: AgentServer) -> socket.socket:
    if server.address.startswith("/"):
        file = socket.socket(socket.AF_UNIX)
        file.connect(server.address)
        return file
    host, _, port = server.address.partition(":")
    return socket.create_connection((host, int(port)), ANSWER_S)


def test_an_operation_is_answered_and_an_event_is_not(server: AgentServer, heard: list[Event]) -> None:
    with connected(server) as spark:
        spark.sendall(json.dumps({"what": "task-started", "waits": False}).encode() + b"\n{\n")
        spark.sendall(json.dumps(reported("create", "before", "offsets/0")).encode() + b"\n")
        assert spark.recv(10) == b"\n"
    assert [each["what"] for each in heard] == ["task-started", OPERATION]
    assert server.failure is None


def test_what_cannot_be_taken_is_a_failure_and_holds_nobody(server: AgentServer) -> None:
    with connected(server) as spark:
        spark.sendall(b'{"what": "broken", "waits": true}\n')
        assert spark.recv(10) == b"\n"
    assert str(server.failure) == "no disk"


def test_a_path_that_is_too_long_for_a_socket_is_refused_with_a_cure(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="TMPDIR"):
        AgentServer(lambda event: None, tmp_path / ("a" * 120))
