"""A container as the harness sees it, with an engine that refuses, forgets, or no longer answers."""

from __future__ import annotations

import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from docker.errors import APIError, NotFound

from harness.errors import StackError
from harness.hosts import container as hosted
from harness.hosts.container import GONE
from harness.hosts.engine import AWAY, AWAY_NOW, STAYS, Engine, Wanted
from harness.wait import until

ASKED = Wanted(name="worker-1", image="i", command=[])


class Container:
    """One that runs until `over` is set; `refuses` is raised by whatever is asked of it."""

    name, id, status = "s-1-worker-1", "abc", "running"

    def __init__(self, refuses: Exception | None = None) -> None:
        self.refuses, self.over = refuses, threading.Event()
        self.attrs = {"State": {"Pid": 0}}
        self.ran: list[str] = []
        self.answers = 0

    def _ask(self, **_: Any) -> None:
        if self.refuses is not None:
            raise self.refuses

    kill = pause = unpause = reload = logs = _ask

    def exec_run(self, argv: list[str], *, user: str) -> SimpleNamespace:
        self._ask()
        self.ran.append(argv[-1])
        return SimpleNamespace(exit_code=self.answers, output=b"no such thing")

    def wait(self) -> dict[str, int]:
        self.over.wait(10)
        if isinstance(self.refuses, NotFound):
            raise self.refuses
        return {"StatusCode": 137}


def over(container: Container) -> hosted.Container:
    engine: Any = SimpleNamespace(start=lambda wanted: container)
    return hosted.Container(engine, ASKED)


def refused(status: int) -> APIError:
    response = requests.Response()
    response.status_code = status
    return APIError("no", response=response, explanation="no")


def test_an_engine_that_does_not_answer_is_not_an_empty_container() -> None:
    made = over(Container(requests.ConnectionError("gone")))
    for ask in (made.processes, made.stopped, made.family()[0].processes, lambda: made.send(signal.SIGKILL)):
        with pytest.raises(StackError, match="the engine does not answer: gone"):
            ask()
    assert not made.disconnected(), "what cannot be seen was not cut off"
    assert made.alive()


def test_a_container_that_is_gone_was_not_signalled() -> None:
    container = Container(NotFound("no such container"))
    made = over(container)
    assert not made.send(signal.SIGKILL)
    assert not made.send(signal.SIGSTOP)
    container.over.set()
    until("its end", lambda: not made.alive(), within_s=60.0)
    assert made.poll() == -signal.SIGKILL and GONE == 137
    assert made.processes() == []
    assert not made.cut() and not made.join()


@pytest.mark.parametrize(("status", "state", "sent"), [(409, "paused", True), (409, "exited", False)])
def test_a_pause_that_is_refused_counts_only_where_it_stands(status: int, state: str, sent: bool) -> None:
    container = Container()
    container.status = state

    def refuse() -> None:
        raise refused(status)

    container.pause = container.kill = lambda **_: refuse()  # type: ignore[method-assign]
    made = over(container)
    assert made.send(signal.SIGSTOP) is sent
    assert not made.send(signal.SIGKILL), "a refused kill killed nobody"


def test_an_engine_that_refuses_for_another_reason_says_it() -> None:
    with pytest.raises(StackError, match=r"asked the engine to send SIGKILL to container s-1-worker-1.*no"):
        over(Container(refused(403))).send(signal.SIGKILL)


class Server(hosted.InContainer):
    """One in a container that is made up."""

    def __init__(self, container: Container) -> None:
        self.asked: list[Wanted] = []
        self._made = container
        engine: Any = SimpleNamespace(start=self._given)
        self._engine = engine

    def _given(self, wanted: Wanted) -> Container:
        self.asked.append(wanted)
        return self._made

    def start(self) -> None:
        self._up(ASKED)


def test_a_server_comes_back_in_the_container_that_it_was_killed_in() -> None:
    container = Container()
    server = Server(container)
    server.stop()
    server.start()
    server.stop()
    server.start()
    assert [each.stays for each in server.asked] == [True]
    away, back = container.ran
    assert AWAY in away and "kill -9 -1" in away
    assert back == f"rm -f {AWAY_NOW} {AWAY}"


def test_a_server_that_is_not_gone_after_its_kill_is_an_error() -> None:
    container = Container()
    server = Server(container)
    server.start()
    container.answers = 1
    with pytest.raises(StackError, match="asked container s-1-worker-1 to let its server go; it said: no such thing"):
        server.stop()
    container.refuses = requests.ConnectionError("gone")
    with pytest.raises(StackError, match="to start its server again: the engine does not answer: gone"):
        server.start()


@pytest.mark.subprocess
def test_the_first_process_of_a_container_goes_with_its_server_unless_that_is_to_be_away(tmp_path: Path) -> None:
    away, left = tmp_path / "away", tmp_path / "left"
    script = STAYS.replace(AWAY_NOW, str(left)).replace(AWAY, str(away))
    assert subprocess.run(["/bin/sh", "-c", script, "server", "sh", "-c", "exit 7"], check=False).returncode == 7
    once = f"[ -e {tmp_path}/second ] && exit 8; : > {tmp_path}/second; : > {away}; kill -9 $$"
    with subprocess.Popen(["/bin/sh", "-c", script, "server", "sh", "-c", once]) as kept:
        until("the first one to be gone", left.exists, within_s=60)
        assert kept.poll() is None
        away.unlink()
        assert kept.wait(60) == 8


def test_nothing_is_started_once_the_end_has_begun() -> None:
    engine = Engine.__new__(Engine)
    engine._gate, engine._starting, engine._closing = threading.Condition(), 0, False
    with engine._alive():
        assert engine._starting == 1
    engine._closing = True
    with pytest.raises(StackError, match="going down"), engine._alive():
        raise AssertionError("it was started")
    assert engine._starting == 0
