"""The source `socket`: what is sent on which connection, and which lines a checkpoint's numbers are about."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.components.socket import source as module
from harness.components.socket.server import LineServer
from harness.components.socket.source import OpenSocket
from harness.errors import HarnessError
from harness.load import load
from harness.run.loop import Result
from harness.run_folder.ledger import State
from harness.scenario import Input, Scenario
from harness.session.run_servers import RunServers
from harness.sources import SOURCES
from harness.sources.base import TellsBeginning
from harness.wait import until
from harness.workloads.base import Record

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def speaker() -> Iterator[LineServer]:
    with closing(LineServer()) as found:
        yield found


def connected(speaker: LineServer) -> socket.socket:
    """A reader that the speaker knows of."""
    before = len(speaker.connections())
    at = speaker.placeholders
    found = socket.create_connection((at["host"], int(at["port"])), timeout=60)
    until("the connection", lambda: len(speaker.connections()) > before, within_s=60.0)
    return found


def heard(reader: socket.socket, lines: int) -> list[bytes]:
    with reader.makefile("rb") as file:
        return [file.readline().rstrip(b"\n") for _ in range(lines)]


def records(*values: bytes) -> list[Record]:
    return [Record(seq, None, value) for seq, value in enumerate(values)]


def planned(checkpoint: Path, batch: int, line: str) -> Path:
    """A batch, planned now; the folder of its source's log."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{line}")
    return checkpoint / "sources" / "0"


def test_a_reader_hears_what_is_read_back(speaker: LineServer, tmp_path: Path) -> None:
    source = OpenSocket(speaker)
    with connected(speaker) as reader:
        answers = source.send(records(b"a", b"", b"b", b"c\rd"))
        assert heard(reader, 2) == [b"a", b"b"]
    states = [State.ACKNOWLEDGED, State.FAILED, State.ACKNOWLEDGED, State.FAILED]
    assert [each.state for each in answers] == states and [each.offset for each in answers] == [0, None, 1, None]
    assert source.read_back(tmp_path / "source.parquet", within_s=1.0) == source.ends() == {0: 2}
    assert pq.read_table(tmp_path / "source.parquet")["value"].to_pylist() == [b"a", b"b"]


def test_without_a_reader_nothing_is_sent(speaker: LineServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READER_S", 0.0)
    (answer,) = OpenSocket(speaker).send(records(b"a"))
    assert answer.state is State.FAILED and "no driver was connected" in (answer.error or "")
    assert len(speaker) == 0


def test_what_a_dead_reader_left_waits_for_the_next(speaker: LineServer) -> None:
    source = OpenSocket(speaker)
    connected(speaker).close()
    until("the end of the connection", lambda: not speaker.connections()[0].open(), within_s=60.0)
    found: list[int | None] = []
    thread = threading.Thread(target=lambda: found.extend(each.offset for each in source.send(records(b"a", b"b"))))
    thread.start()
    with connected(speaker) as reader:
        thread.join(60.0)
        assert heard(reader, 2) == [b"a", b"b"] and found == [0, 1]
    assert not speaker.crowded and [each.base for each in speaker.connections()] == [0, 0]


@given(first=st.integers(0, 4), second=st.integers(0, 4))
def test_numbers_are_those_of_the_checkpoints_own_connection(
    first: int, second: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("run")
    with closing(LineServer()) as speaker:
        source = OpenSocket(speaker)
        assert isinstance(source, TellsBeginning)
        base = 0
        for name, many in (("one", first), ("two", second)):
            checkpoint = folder / name
            log = planned(checkpoint, 0, "-1")
            assert source.offsets("-1", log) == source.begins(checkpoint) == {0: base}
            with connected(speaker):
                source.send(records(*[b"x"] * many))
                assert [source.offsets(str(n), log) for n in range(many)] == [{0: base + n + 1} for n in range(many)]
                with pytest.raises(HarnessError, match=f"of the {many} that were sent"):
                    source.offsets(str(many), log)
            until("the end", lambda: not speaker.connections()[-1].open(), within_s=60.0)
            base += many
        # Of the first, nothing has changed; Spark may purge where it began.
        (folder / "one" / "offsets" / "0").unlink()
        log = folder / "one" / "sources" / "0"
        assert [source.offsets(str(n), log) for n in range(-1, first)] == [{0: n + 1} for n in range(-1, first)]
        assert source.begins(folder / "one") == {0: 0}


def test_a_checkpoint_that_outlives_its_connection_is_an_error(speaker: LineServer, tmp_path: Path) -> None:
    source, log = OpenSocket(speaker), planned(tmp_path, 0, "-1")
    with connected(speaker):
        source.send(records(b"a", b"b"))
    until("the end of the connection", lambda: not speaker.connections()[0].open(), within_s=60.0)
    with connected(speaker):
        assert source.offsets("1", log) == {0: 2}, "it has planned nothing since"
        later = time.time() + 1
        planned(tmp_path, 1, "0")
        os.utime(tmp_path / "offsets" / "1", (later, later))
        with pytest.raises(HarnessError, match="connected again, and Spark counts its lines from zero"):
            source.offsets("0", log)


def test_two_readers_at_once_are_an_error(speaker: LineServer, tmp_path: Path) -> None:
    log = planned(tmp_path, 0, "-1")
    with connected(speaker), connected(speaker), pytest.raises(HarnessError, match="two readers were connected"):
        OpenSocket(speaker).offsets("-1", log)


@pytest.mark.parametrize("line", ["", "-", '{"logOffset":0}', '{"topic":{"0":1}}', "1.5"])
def test_a_line_about_something_else_is_none_of_ours(speaker: LineServer, tmp_path: Path, line: str) -> None:
    assert OpenSocket(speaker).offsets(line, planned(tmp_path, 0, line)) is None


@pytest.mark.stack
@pytest.mark.prove
def test_a_program_whose_checkpoint_outlives_its_connection_has_no_verdict(
    run_scenario: Callable[[Scenario], Result],
) -> None:
    scenario = load(ROOT / "scenarios" / "sources" / "socket_before_offset_commit.yaml")
    kept = scenario.pipeline.entry.replace("new_checkpoint", "kept_checkpoint")
    args = (*scenario.pipeline.args, "--checkpoint", "{checkpoint}")
    with pytest.raises(HarnessError, match="connected again, and Spark counts its lines from zero"):
        run_scenario(replace(scenario, pipeline=replace(scenario.pipeline, entry=kept, args=args)))


def test_a_run_has_a_port_of_its_own() -> None:
    servers = RunServers("socket", LineServer)
    given = {each.label: each for each in servers.provide("r1", {"": {}}).values()}
    source = SOURCES["socket"].open(Input(source="socket"), given)
    assert isinstance(source, OpenSocket)
    with connected(given["socket"].at) as reader:
        servers.drop("r1", [""])
        assert reader.recv(1) == b"", "it hangs up"
    assert not given["socket"].at.alive()
