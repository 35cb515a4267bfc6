"""A YARN of our own: it starts a driver again that was killed, the history and the run folder have each attempt, and
nothing of it is left after `kill -9` of the harness."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from harness.components.yarn.containers import EXECUTOR, MASTER
from harness.components.yarn.yarn_stack import YarnStack
from harness.history import AttemptEnded, AttemptStarted, Event, read
from harness.load import load
from harness.machine import spark_versions
from harness.run.loop import run
from harness.wait import Waiting, until
from tests.limits import PROCESS_S
from tests.test_leaks import begun, listening, nobody, ours, start, temporary

__all__ = ["temporary"]
pytestmark = pytest.mark.stack
OWN = Path(__file__).parents[1] / "scenarios" / "yarn"
ONCE_MORE = [3] if spark_versions.installed() in ("4.1.0", "4.1.1", "4.1.2") else []
"""Kafka's connector of these versions ends the attempt that has run a batch again (SPARK-55271)."""
AT_WORK_S, GONE_S = 600.0, 60.0
Some = TypeVar("Some", bound=Event)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnStack]:
    with YarnStack(tmp_path_factory.mktemp("logs"), needs=["kafka", "postgres"]) as there:
        yield there


def told(folder: Path, kind: type[Some]) -> list[Some]:
    """The history's events of one kind."""
    return [line.event for line in read(folder / "history.jsonl") if isinstance(line.event, kind)]


@pytest.mark.prove
def test_yarn_starts_a_killed_driver_again(stack: YarnStack, tmp_path: Path) -> None:
    done = run(load(OWN / "append_before_offset_commit.yaml"), stack, reports=tmp_path)
    assert done.verdict.as_expected, (done.verdict.word, done.verdict.reasons)
    (step,) = done.verdict.steps
    assert (step.injected, step.attempt, step.evidence.driver_status) == (True, 1, -signal.SIGKILL)
    started, ended = told(done.folder, AttemptStarted), told(done.folder, AttemptEnded)[0]
    assert [each.attempt for each in started] == [1, 2, *ONCE_MORE]
    assert (ended.attempt, ended.status, ended.scheduled) == (1, -signal.SIGKILL, True)
    # YARN counts attempts as the history does.
    assert "_01_000001" in ended.names["container"] and started[1].names["application"] == ended.names["application"]
    for number in (1, 2):
        said = (done.folder / "logs" / f"driver-{number}.log").read_text(errors="replace")
        assert "ApplicationMaster" in said, "the output of each attempt's container"


@pytest.mark.prove
@pytest.mark.parametrize("scenario", ["upsert_mid_batch", "hdfs_upsert_mid_batch"])
def test_nothing_is_left_after_kill_9(temporary: Path, scenario: str) -> None:
    word = temporary.name
    child = start(temporary, word, "--stack", "yarn", scenario=OWN / f"{scenario}.yaml")
    try:

        def working() -> bool | Waiting:
            mains = [each for each in ours(word) if MASTER in each or EXECUTOR in each]
            if child.poll() is not None:
                return Waiting(f"ended: {(temporary / 'said').read_text()[-500:]}")
            return len(mains) >= 2 or Waiting(f"{len(mains)} containers")

        until("a driver and an executor in containers", working, within_s=AT_WORK_S)
        sockets = listening(word)
        assert sockets
        assert any("datanode.DataNode" in each for each in ours(word)) is scenario.startswith("hdfs")
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGKILL)
        child.wait(PROCESS_S)
    until("everything to be gone", lambda: nobody(word, sockets), within_s=GONE_S)
    assert begun(temporary) == []
