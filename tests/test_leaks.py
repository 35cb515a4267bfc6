"""`kill -9` of a running `onceproof run`, and of its reaper: nothing of ours is left.

`ONCEPROOF_KILLS` sets how many times (default 3; the figure that the README gives is from 30), the moments are drawn
from a seed that the failure names.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from harness.stack import session
from harness.wait import Waiting, until

pytestmark = pytest.mark.stack
HOUSE = Path(__file__).parents[1]
SCENARIO = HOUSE / "scenarios" / "proving" / "upsert_before_offset_commit.yaml"
KILLS = int(os.environ.get("ONCEPROOF_KILLS", "3"))
CLEAN_WITHIN_S = 2.0
MARK = b"ONCEPROOF_LEAK_TEST="


def ours(word: str) -> list[str]:
    """Living processes that carry this test's word in their environment or their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environ, command = (folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z" and (MARK + word.encode() in environ or word.encode() in command):
            found.append(f"{folder.name} {command.replace(bytes(1), b' ').decode(errors='replace')[:100]}")
    return found


def start(tmp_path: Path, word: str) -> subprocess.Popen[bytes]:
    """`onceproof run`, in a temporary folder of its own, so that its sessions can be told from others'."""
    temporary = tmp_path / word
    temporary.mkdir(mode=0o755)
    environment = {**os.environ, MARK.decode().rstrip("="): word, "TMPDIR": str(temporary)}
    argv = [sys.executable, "-m", "harness", "run", str(SCENARIO), "--reports", str(tmp_path / "reports" / word)]
    return subprocess.Popen(argv, env=environment, cwd=HOUSE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def nobody(word: str) -> bool | Waiting:
    left = ours(word)
    return Waiting("; ".join(left)) if left else True


@pytest.mark.parametrize("number", range(KILLS))
def test_kill_9_of_a_run_leaves_nothing(tmp_path: Path, number: int) -> None:
    moment = random.Random(f"harness {number}").uniform(0.3, 16.0)
    word = f"leak{os.getpid()}n{number}"
    harness = start(tmp_path, word)
    try:
        with_deadline(harness, moment)
    finally:
        harness.kill()
        harness.wait(10)
    until(f"nothing of the run killed after {moment:.2f} s to live", lambda: nobody(word), within_s=CLEAN_WITHIN_S)
    until("its session's folder to be gone", lambda: not list((tmp_path / word).glob("*/s-*")), within_s=CLEAN_WITHIN_S)


@pytest.mark.parametrize("number", range(max(1, KILLS // 3)))
def test_kill_9_of_reaper_and_run_leaves_nothing_after_the_next_starts_sweep(tmp_path: Path, number: int) -> None:
    moment = random.Random(f"reaper {number}").uniform(1.5, 14.0)
    word = f"leak{os.getpid()}r{number}"
    harness, reaper = start(tmp_path, word), 0
    try:
        with_deadline(harness, moment)
        # The run first: a reaper that dies alone is replaced at once.
        harness.send_signal(signal.SIGSTOP)
        reaper = reaper_of(harness)
        if reaper:
            psutil.Process(reaper).kill()
    finally:
        harness.kill()
        harness.wait(10)
    assert reaper or not ours(word), "it was killed before it had a reaper, and yet something runs"
    session.sweep(session.root(temporary=tmp_path / word))
    until(f"nothing of the run killed after {moment:.2f} s to live", lambda: nobody(word), within_s=CLEAN_WITHIN_S)


def test_a_reaper_that_is_killed_alone_is_replaced(tmp_path: Path) -> None:
    word = f"leak{os.getpid()}alone"
    harness = start(tmp_path, word)
    try:
        # Killed before it has answered, it is not replaced: then the harness refuses to start anything.
        until("something to be started", lambda: any("postgres" in each for each in ours(word)), within_s=30.0)
        first = until("a reaper", lambda: reaper_of(harness), within_s=20.0)
        psutil.Process(first).kill()
        until("another reaper", lambda: reaper_of(harness) not in (0, first), within_s=20.0)
    finally:
        harness.kill()
        harness.wait(10)
    until("nothing to live", lambda: nobody(word), within_s=CLEAN_WITHIN_S)


def reaper_of(harness: subprocess.Popen[bytes]) -> int:
    """The pid of its living reaper; 0 if it has none."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(harness.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.status() != psutil.STATUS_ZOMBIE and any("reaper.py" in word for word in child.cmdline()):
                    return child.pid
    return 0


def with_deadline(harness: subprocess.Popen[bytes], seconds: float) -> None:
    """Let it run for `seconds`, or until it ends by itself."""
    timer = threading.Event()
    threading.Timer(seconds, timer.set).start()
    until("the moment", lambda: timer.is_set() or harness.poll() is not None, within_s=seconds + 10)
