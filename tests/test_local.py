"""A process of this machine: its connections, how it ended, and which of a driver's processes a fault means."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from harness.hosts.local import LocalProcess, chosen, exit_status
from harness.scenario import Victim
from harness.wait import until
from tests.limits import PROCESS_S


def test_a_connection_is_seen_from_both_ends_while_it_lasts() -> None:
    this = LocalProcess(psutil.Process(os.getpid()))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not this.reaches(port), "nobody has called yet: who listens reaches nobody"
        with socket.create_connection(("127.0.0.1", port)) as client:
            here = client.getsockname()[1]
            assert this.reaches(port) and not this.reaches(1)
            assert this.speaks_from("127.0.0.1", here) and not this.speaks_from("127.0.0.2", here)
        until("the connection to be gone", lambda: not this.reaches(port), within_s=60)


def test_the_connections_of_others_are_not_its_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        assert not LocalProcess(psutil.Process(1)).reaches(server.getsockname()[1])


@pytest.mark.parametrize(
    ("shell", "status"),
    [(0, 0), (1, 1), (127, 127), (128, 128), (137, -9), (143, -15), (255, 255), (-9, -9)],
)
def test_an_exit_status_that_names_a_signal_is_that_signal(shell: int, status: int) -> None:
    assert exit_status(shell) == status


@pytest.mark.subprocess
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_shell_gives_the_signal_that_ended_its_program(number: signal.Signals) -> None:
    done = subprocess.run(["/bin/sh", "-c", f"sh -c 'kill -{number} $$'; exit $?"], check=False, timeout=PROCESS_S)
    assert exit_status(done.returncode) == -number


HELD = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'input()'])\n"
"""A program with a worker that is there until its input ends."""
AS_JVM = 'exec -a /jdk/bin/java /bin/bash -c \'"$@"; true\' bash "$@"'


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "x.py"
    path.write_text(HELD, encoding="utf-8")
    return path


@contextmanager
def tree(shell: str, *words: str) -> Iterator[list[LocalProcess]]:
    """A shell, a Python program that it runs, and a worker of that."""
    with subprocess.Popen(["/bin/bash", "-c", shell, "bash", *words], stdin=subprocess.PIPE) as top:
        try:
            root = LocalProcess(psutil.Process(top.pid))
            until("the worker to be there", lambda: len(root.family()) == 3, within_s=PROCESS_S)
            yield root.family()
        finally:
            for each in root.family():
                each.send(signal.SIGKILL)


@pytest.mark.subprocess
@pytest.mark.parametrize("argument", [(), ("other.py",)])
def test_of_a_driver_the_program_is_the_interpreter_with_the_file(program: Path, argument: tuple[str, ...]) -> None:
    with tree(AS_JVM, sys.executable, str(program), *argument) as found:
        jvm, python, worker = found
        assert [(each.is_jvm, each.is_program) for each in found] == [(True, False), (False, True), (False, False)]
        assert chosen(found, Victim.PYTHON) == [python]
        assert chosen(found, Victim.JVM) == [jvm]
        assert chosen([worker, python, jvm], Victim.TREE) == [jvm, worker, python]
    until("all to be gone", lambda: not any(each.command() for each in found), within_s=PROCESS_S)
    assert not python.is_program and not jvm.is_jvm


@pytest.mark.subprocess
def test_a_shell_without_a_jvm_has_a_program_all_the_same(program: Path) -> None:
    """As spark-submit is, before it is its JVM."""
    with tree('"$@"; true', sys.executable, str(program)) as found:
        assert chosen(found, Victim.PYTHON) == found[1:2]
        assert chosen(found, Victim.JVM) == []
        assert chosen(found, Victim.TREE) == found


@pytest.mark.subprocess
def test_a_process_is_gone_while_its_parent_asks_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """For some microseconds the kernel shows it as dead (X), which is no zombie any more."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = LocalProcess(psutil.Process(child.pid))
        assert found.alive()
        monkeypatch.setattr(found.process, "status", lambda: psutil.STATUS_DEAD)
        assert not found.alive()


THREADS = """
import ctypes, threading
threading.Thread(target=input).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.subprocess
def test_a_process_whose_first_thread_has_ended_lives_on_in_its_others() -> None:
    """As one does that was killed, while a thread of it is in a system call."""
    with subprocess.Popen([sys.executable, "-c", THREADS], stdin=subprocess.PIPE) as child:
        found = LocalProcess(psutil.Process(child.pid))
        until("a zombie", lambda: found.process.status() == psutil.STATUS_ZOMBIE, within_s=PROCESS_S)
        assert found.alive() and child.poll() is None
        child.kill()
        until("its end", lambda: not found.alive(), within_s=PROCESS_S)
        assert child.poll() == -signal.SIGKILL
