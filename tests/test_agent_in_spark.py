"""The agent alters nothing that Spark does, and stops nothing once its harness is gone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness.run.progress.agent import AgentServer, Event
from harness.wait import until
from tests.agent_runs import ENDS_S, FILES, KEYS, PROGRAMS, Played, laid_out, played, with_agent

pytestmark = pytest.mark.stack
HELD_S = 60.0
HARNESS = """
import sys, threading
from harness.run.progress.agent import AgentServer

def heard(event):
    if (event.get("op"), event.get("when")) == ("rename", "before") and event["path"].endswith("commits/1"):
        print("held", flush=True)
        threading.Event().wait()

print(AgentServer(heard).address, flush=True)
threading.Event().wait()
"""
EACH_ITS_OWN = re.compile(r'"batchTimestampMs":\d+')
UNCOUNTED = {"SparkListenerExecutorMetricsUpdate", "SparkListenerStageExecutorMetrics"}
"""They come at times of their own."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Played, Played, list[Event]]]:
    """The program without the agent, and with it; and what was reported."""
    heard: list[Event] = []
    folders = [tmp_path_factory.mktemp(name) for name in ("without", "with")]
    for folder in folders:
        laid_out(folder)
    # A socket file here, as containers have it; the harness that is killed below has a port.
    with closing(AgentServer(heard.append, folders[1] / "agent")) as server:
        yield played(folders[0], {}), played(folders[1], with_agent(), server.address), heard


def test_the_sink_is_the_same(both: tuple[Played, Played, list[Event]]) -> None:
    without, with_it, _ = both
    assert (without.status, with_it.status) == (0, 0), with_it.log[-3000:]
    rows = without.out.read_text(encoding="utf-8")
    assert rows == with_it.out.read_text(encoding="utf-8")
    assert [len(json.loads(line)[1]) for line in rows.splitlines()] == [KEYS] * FILES


def files(checkpoint: Path) -> dict[str, bytes]:
    """By name what Spark keeps of itself; of the others their names."""
    found = {}
    for path in checkpoint.rglob("*"):
        name = path.relative_to(checkpoint).as_posix()
        if path.is_file():
            text = EACH_ITS_OWN.sub("", path.read_text(encoding="utf-8", errors="replace"))
            found[name] = text.encode() if name.split("/")[0] in ("offsets", "commits") and "crc" not in name else b""
    return found


def test_the_checkpoint_is_the_same(both: tuple[Played, Played, list[Event]]) -> None:
    without, with_it, _ = both
    assert files(without.checkpoint) == files(with_it.checkpoint)
    assert {f"commits/{batch}" for batch in range(FILES)} <= files(with_it.checkpoint).keys()


def counted(events: Path) -> Counter[str]:
    """How often each event stands in the event log."""
    lines = events.read_text(encoding="utf-8").splitlines()
    return Counter(name for line in lines if (name := json.loads(line)["Event"]) not in UNCOUNTED)


def test_the_event_log_is_the_same(both: tuple[Played, Played, list[Event]]) -> None:
    without, with_it, _ = both
    assert counted(without.events) == counted(with_it.events)
    assert counted(with_it.events)["SparkListenerTaskEnd"] > FILES


def test_each_file_of_the_checkpoint_was_reported_before_and_after(both: tuple[Played, Played, list[Event]]) -> None:
    _, with_it, heard = both
    for side in ("before", "after"):
        renamed = {each["path"] for each in heard if (each.get("op"), each.get("when")) == ("rename", side)}
        # A file system's own checksums have a hidden name.
        there = {name for name in files(with_it.checkpoint) if not Path(name).name.startswith(".")}
        assert {Path(path).relative_to(with_it.checkpoint).as_posix() for path in map(local, renamed)} == there
    assert [each for each in heard if each["what"] == "task-ended"]


def local(path: str) -> str:
    """Without Spark's scheme."""
    return path.removeprefix("file:")


def test_a_driver_whose_thread_is_held_goes_on_once_the_harness_is_killed(tmp_path: Path) -> None:
    laid_out(tmp_path)
    harness = subprocess.Popen([sys.executable, "-c", HARNESS], stdout=subprocess.PIPE, text=True)
    try:
        assert harness.stdout is not None
        address = harness.stdout.readline().strip()
        done: list[Played] = []
        program = threading.Thread(target=lambda: done.append(played(tmp_path, with_agent(), address)))
        program.start()
        assert harness.stdout.readline() == "held\n"
        assert (tmp_path / "checkpoint" / "offsets" / "1").exists()
        assert not (tmp_path / "checkpoint" / "commits" / "1").exists()
        program.join(1.0)
        assert program.is_alive(), "it went on while it was held"
    finally:
        harness.kill()
        harness.communicate(timeout=HELD_S)
    program.join(ENDS_S)
    assert done and done[0].status == 0, done
    assert len(done[0].out.read_text(encoding="utf-8").splitlines()) == FILES


def test_a_program_that_stops_its_query_ends_no_hold(tmp_path: Path) -> None:
    """Spark interrupts the query's thread, and an interrupt closes a channel on which a thread waits."""
    laid_out(tmp_path)
    held, let_go, done = threading.Event(), threading.Event(), list[Played]()

    def hold(event: Event) -> None:
        if (event.get("op"), event.get("when")) == ("rename", "before") and event["path"].endswith("commits/1"):
            held.set()
            let_go.wait(HELD_S)

    with closing(AgentServer(hold, tmp_path / "agent")) as server:
        given = (tmp_path, with_agent(), server.address, PROGRAMS / "stopped.py")
        program = threading.Thread(target=lambda: done.append(played(*given)))
        program.start()
        assert held.wait(ENDS_S)
        (tmp_path / "stop").touch()
        until("the program to stop its query", (tmp_path / "stopping").exists, within_s=HELD_S)
        program.join(1.0)
        assert program.is_alive(), "it went on while it was held"
        assert not (tmp_path / "checkpoint" / "commits" / "1").exists()
        let_go.set()
        program.join(ENDS_S)
    assert done and done[0].status == 0, done
    assert not (tmp_path / "checkpoint" / "offsets" / "3").exists()
