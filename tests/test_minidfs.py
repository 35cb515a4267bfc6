"""HDFS in one JVM: what is refused of its parts, what is left after a kill, and that nothing is left of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.components.hdfs.folder import HdfsFolder
from harness.components.hdfs.process import SETTINGS
from harness.components.minidfs.process import MiniDfs, MiniDfsThere
from harness.errors import ScenarioError, StackError, UsageError
from harness.hosts.local import carrying
from harness.load import load
from harness.machine import java
from harness.session.reaper import MARKER
from harness.session.session import Session
from harness.stacks.needed_parts import parts
from harness.stacks.supported import unsupported
from harness.wait import until
from tests.provided import running

stack = pytest.mark.stack
HOUSE = Path(__file__).parents[1]
WITHIN_S = 180.0
OWNER = """
import logging, signal, sys
from pathlib import Path
from harness.components.minidfs.process import MiniDfs
from harness.machine import java
from harness.session.session import Session

with Session() as session:
    server = MiniDfs(session, java.find(), logs=Path(sys.argv[1]))
    server.start()
    server.files.create("/a file", b"one")
    print(session.id, session.folder, flush=True)
    signal.pause()
"""
STEP = "- {when: {point: sink-committed, batch: 3}, do: %s}"
SCENARIO = """\
name: a part of one JVM
pipeline: {entry: pay.py, checkpoint: %s}
sink: {postgres: payments, expected: select id from ledger, key: [id]}
schedule:
  %s
verdict: %s
"""


def written(folder: Path, fault: str, *, checkpoint: str = "minidfs", expected: str = "held") -> Path:
    """A scenario with one step."""
    (folder / "pay.py").write_text("")
    (folder / "scenarios").mkdir()
    path = folder / "scenarios" / "it.yaml"
    path.write_text(SCENARIO % (checkpoint, STEP % fault, expected))
    return path


@pytest.mark.parametrize("expected", ["held", "untested"])
@pytest.mark.parametrize(
    "fault",
    ["kill namenode, for: 2s", "kill datanode, for: 2s", "'enter safe mode', for: 2s", "lose blocks", "lose node"],
)
def test_a_fault_on_one_of_its_parts_is_refused_whatever_is_expected(tmp_path: Path, fault: str, expected: str) -> None:
    name = fault.partition(",")[0].strip("'")
    said = (
        f"it.yaml:5:51: schedule[0].do: {name} strikes hdfs; minidfs runs NameNode and DataNode in one process, "
        "which no fault takes apart: take hdfs in its place, or `do: kill minidfs`"
    )
    with pytest.raises(ScenarioError, match=f"{re.escape(said)}$"):
        load(written(tmp_path, fault, expected=expected))


def test_it_is_killed_as_a_whole_and_keeps_a_checkpoint(tmp_path: Path) -> None:
    found = load(written(tmp_path, "kill minidfs, for: 2s"))
    assert parts(found)["minidfs"] == {"checkpoint": True}
    assert "hdfs" not in parts(found)
    assert (unsupported(found, "processes"), unsupported(found, "external")) == (
        [],
        ["minidfs", "kill minidfs"],
    )


def test_two_processes_are_struck_one_by_one_as_before(tmp_path: Path) -> None:
    assert load(written(tmp_path, "kill namenode, for: 2s", checkpoint="hdfs")).schedule[0].do.kind == "kill namenode"


def test_whoever_has_both_may_strike_the_one_that_has_parts(tmp_path: Path) -> None:
    path = written(tmp_path, "kill namenode, for: 2s")
    path.write_text(path.read_text().replace("checkpoint: minidfs", 'checkpoint: minidfs, env: {HERE: "{hdfs.path}"}'))
    assert {"hdfs", "minidfs"} < {*parts(load(path))}


def test_one_of_another_process_is_found_by_its_address() -> None:
    there = MiniDfsThere("hdfs://127.0.0.1:9000?http=127.0.0.1:9870", ours=True)
    assert (there.name, there.scheme, there.shared) == ("minidfs", "hdfs://127.0.0.1:9000", False)
    with pytest.raises(UsageError):
        MiniDfsThere("hdfs://127.0.0.1:9000", ours=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniDfs]:
    logs = tmp_path_factory.mktemp("logs")
    with Session() as session, running(MiniDfs(session, java.find(), logs=logs)) as made:
        yield made


@pytest.fixture
def own(server: MiniDfs) -> Iterator[HdfsFolder]:
    made = server.provide("t1", {"": {"checkpoint": True}})[""]
    filled = made.filled()
    assert filled["checkpoint"] == f"{filled['minidfs.path']}/checkpoint"
    yield made.at
    server.drop("t1", [""])
    assert made.at.entries("") == []


@stack
def test_it_is_one_process_with_the_settings_of_two(server: MiniDfs) -> None:
    said = server.describe()
    assert (said["processes"], said["settings"]) == (["minidfs"], SETTINGS)


@stack
def test_what_was_acknowledged_is_there_after_a_kill_of_both(server: MiniDfs, own: HdfsFolder) -> None:
    own.write("kept", b"one")
    server.stop()
    server.check()
    with pytest.raises(StackError):
        own.entries("")
    server.start()
    assert own.read("kept") == b"one"
    own.write("kept", b"two")
    assert own.read("kept") == b"two"


@stack
def test_its_death_that_no_fault_has_caused_is_told(tmp_path: Path) -> None:
    with Session() as session, running(MiniDfs(session, java.find(), logs=tmp_path)) as made:
        os.kill(_pid(made), signal.SIGKILL)
        until("it to be missed", lambda: _missed(made), within_s=WITHIN_S)


def _pid(server: MiniDfs) -> int:
    (daemon,) = server.daemons
    assert daemon._process is not None
    return daemon._process.pid


def _missed(server: MiniDfs) -> bool:
    try:
        server.check()
    except StackError as error:
        return "minidfs ended with signal 9" in str(error)
    return False


@stack
def test_kill_9_of_whoever_started_it_leaves_nothing(tmp_path: Path) -> None:
    environment, argv = {**os.environ, "TMPDIR": str(tmp_path)}, [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(argv, env=environment, cwd=HOUSE, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout is not None
            session, _, folder = owner.stdout.readline().strip().partition(" ")
            assert [each.is_jvm for each in carrying(f"{MARKER}={session}")] == [True]
        finally:
            owner.kill()
    until("nothing of it to live", lambda: not carrying(f"{MARKER}={session}"), within_s=WITHIN_S)
    until("its folder to be gone", lambda: not Path(folder).exists(), within_s=WITHIN_S)
