"""Sessions and their reaper: whatever becomes of the harness, nothing that it started lives on.

The mock harness is a real process that starts trees of shells and sleepers: children, grandchildren, a double fork
into a session of its own, a child that threw its environment away. A leak is found by command line, not by the
code under test.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import wait
from harness.errors import HarnessError, StackError
from harness.session import reaper, session
from harness.session.reaper import ProcessId, Row
from harness.session.session import Session

PLAIN = {"PATH": os.environ["PATH"]}
TREE = "sleep 3601.{token} & (setsid sh -c 'sleep 3602.{token} & sleep 3603.{token}' &); exec env -i sleep 3604.{token}"
MOCK = """
import os, sys, threading
from pathlib import Path
from harness.errors import StackError
from harness.session.session import Session
session = Session()
if len(sys.argv) > 2 and os.fork() == 0:
    os.close(1)
    try:
        session.close()
        session.spawn(["sh", "-c", sys.argv[1]], name="zombie", log=Path("log"), env={"PATH": os.environ["PATH"]})
    except StackError:
        Path("refused").touch()
    threading.Event().wait(30)
    os._exit(0)
for _ in range(40):
    session.spawn(["sh", "-c", sys.argv[1]], name="tree", log=Path("log"), env={"PATH": os.environ["PATH"]})
    print(session.id, session.reaper_pid, flush=True)
    threading.Event().wait(0.01)
threading.Event().wait(60)
"""


def living(token: str) -> list[int]:
    """The pids of sleepers with this token; zombies are not alive."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        text = " ".join(process.info["cmdline"] or ())
        if f".{token}" in text and process.info["status"] != psutil.STATUS_ZOMBIE and "-c" not in text.split()[:2]:
            found.append(process.pid)
    return found


def unlocked(file: Path) -> bool:
    """Return whether another process could lock it."""
    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def gone(token: str, within_s: float) -> None:
    wait.until(f"token {token} to be gone", lambda: not living(token), within_s=within_s, every_s=0.02)


def new_token() -> str:
    return str(random.SystemRandom().randrange(10**9, 10**10))


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Mock:
    """A harness of its own process, with a temporary folder of its own."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.token, self.folder = new_token(), folder
        folder.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-c", MOCK, TREE.format(token=self.token), *more],
            env={**os.environ, "TMPDIR": str(folder)},
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )

    def started(self) -> tuple[str, int]:
        """Wait for the next tree; session id and the reaper's pid."""
        assert self.process.stdout is not None
        words = self.process.stdout.readline().split()
        return words[0], int(words[1])

    def kill(self) -> int:
        """Kill it; how many trees it had started (and not told by `started`)."""
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        if self.process.stdout.closed:
            return 0
        with self.process.stdout as out:
            return len(out.readlines())

    def sessions(self, *, begun: bool = False) -> list[Path]:
        """The folders of its sessions; only of those that started something if `begun`."""
        found = list(self.folder.glob(f"onceproof-{os.getuid()}/{session.PREFIX}*"))
        return [folder for folder in found if not begun or (folder / reaper.RECORD).exists()]


@pytest.fixture
def mocks(tmp_path: Path) -> Iterator[list[Mock]]:
    """Mocks added here are cleaned up whatever the test finds."""
    made: list[Mock] = []
    yield made
    for mock in made:
        mock.kill()
        for pid in living(mock.token):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Session]:
    with Session(temporary=tmp_path) as made:
        yield made


def sleeper(own: Session, tmp_path: Path, script: str = "exec sleep 3600") -> subprocess.Popen[bytes]:
    return own.spawn(["sh", "-c", script], name="sleeper", log=tmp_path / "log", env=PLAIN)


def test_thirty_kills_at_random_moments_leave_nothing(tmp_path: Path, mocks: list[Mock]) -> None:
    moments = random.Random(7)
    # So many trees after the first, and so much later: by time alone, a busy machine has no second one yet.
    more = [moments.randint(0, 8) for _ in range(30)]
    later_s = [moments.uniform(0.0, 0.02 if number % 5 else 0.25) for number in range(30)]

    def trial(number: int) -> int:
        mock = Mock(tmp_path / str(number))
        mocks.append(mock)
        told = 1 + more[number] if number % 5 else 0  # every fifth may be struck before it started anything
        for _ in range(told):
            mock.started()
        threading.Event().wait(later_s[number])
        trees = told + mock.kill()
        gone(mock.token, within_s=60.0)
        # One killed between its folder and its reaper has started nothing: the next start sweeps the empty folder.
        wait.until("the folder to go", lambda: not mock.sessions(begun=True), within_s=60.0)
        session.sweep(session.claim(session.root(temporary=mock.folder)))
        assert mock.sessions() == []
        return trees

    with ThreadPoolExecutor(max_workers=3) as pool:
        trees = list(pool.map(trial, range(30)))
    assert sum(trees) > 50 and sum(count > 0 for count in trees) >= 10, "killed too early to prove anything"
    assert not [mock.token for mock in mocks if living(mock.token)]


def test_a_fork_that_holds_the_pipe_does_not_stop_the_reaper(tmp_path: Path, mocks: list[Mock]) -> None:
    mock = Mock(tmp_path, "fork")
    mocks.append(mock)
    mock.started()
    forked = [child.pid for child in psutil.Process(mock.process.pid).children() if MOCK in child.cmdline()]
    try:
        mock.kill()
        gone(mock.token, within_s=60.0)
        assert len(forked) == 1
        wait.until("the fork to be refused its parent's session", (tmp_path / "refused").exists, within_s=20.0)
    finally:
        for pid in forked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_the_next_start_sweeps_what_a_dead_harness_and_a_dead_reaper_left(tmp_path: Path, mocks: list[Mock]) -> None:
    mock = Mock(tmp_path)
    mocks.append(mock)
    name, pid = mock.started()
    wait.until("a sleeper", lambda: living(mock.token), within_s=60.0)
    # Stopped first, or it would replace its reaper in time.
    mock.process.send_signal(signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    mock.kill()
    assert living(mock.token)
    # A child that was forked and has not become its program yet holds what its parent had locked.
    (folder,) = mock.sessions()
    wait.until("the dead harness's lock to be free", lambda: unlocked(folder / session.LOCK), within_s=60.0)
    with Session(temporary=tmp_path) as later:
        assert later.swept == [name]
        assert not living(mock.token)
    assert not mock.sessions()


@pytest.mark.subprocess
def test_a_sweep_leaves_a_living_session_alone(own: Session, tmp_path: Path) -> None:
    child = sleeper(own, tmp_path)
    with Session(temporary=tmp_path) as other:
        assert other.swept == []
    assert child.poll() is None
    assert own.folder.exists()


def test_a_dead_reaper_is_replaced_and_the_new_one_works(tmp_path: Path, mocks: list[Mock]) -> None:
    mock = Mock(tmp_path)
    mocks.append(mock)
    _, first = mock.started()
    os.kill(first, signal.SIGKILL)

    def reapers() -> list[int]:
        rows = [seen for seen in reaper.table().values() if seen.parent == mock.process.pid and seen.id.pid != first]
        return [seen.id.pid for seen in rows if reaper.__file__.encode() in _command(seen.id.pid)]

    assert wait.until("a second reaper", reapers, within_s=60.0)
    # The new one reads the process table first when the harness dies, ready or not.
    mock.kill()
    gone(mock.token, within_s=60.0)


@pytest.mark.subprocess
def test_the_watch_counts_the_reapers_it_replaced(own: Session, tmp_path: Path) -> None:
    def replaced(count: int) -> bool:
        return own.rearmed == count

    for count in (1, 2, 3):
        os.kill(own.reaper_pid, signal.SIGKILL)
        wait.until("a new reaper", partial(replaced, count), within_s=60.0)
    child = sleeper(own, tmp_path)
    own.close()
    assert child.poll() == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_reaper_ignores_polite_signals(own: Session, number: signal.Signals) -> None:
    pid = own.reaper_pid
    os.kill(pid, number)
    os.kill(pid, 0)
    own.guard()
    assert (own.reaper_pid, own.rearmed) == (pid, 0)


@pytest.mark.parametrize(
    "body",
    ["", "print('steady')", "import threading; threading.Event().wait(60)"],
    ids=["exits", "wrong word", "silent"],
)
def test_without_an_answer_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    monkeypatch.setattr(session, "ACK_S", 0.3)
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(StackError, match="reaper did not answer"):
        Session(temporary=tmp_path, reaper_argv=[sys.executable, "-I", "-S", "-c", body])
    assert {child.pid for child in psutil.Process().children()} <= before
    assert not list(session.root(temporary=tmp_path).glob(session.PREFIX + "*"))


def test_what_the_reaper_said_is_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="no disk today"):
        Session(temporary=tmp_path, reaper_argv=[sys.executable, "-I", "-S", "-c", "raise OSError('no disk today')"])


@pytest.mark.subprocess
def test_close_ends_the_tree_and_may_be_called_twice(tmp_path: Path) -> None:
    token = new_token()
    with Session(temporary=tmp_path) as own:
        sleeper(own, tmp_path, TREE.format(token=token))
        wait.until("four sleepers", lambda: len(living(token)) == 4, within_s=60.0)
        own.close()
        assert not living(token)
        assert not own.folder.exists()
    with pytest.raises(StackError, match="closed"):
        sleeper(own, tmp_path)


@pytest.mark.subprocess
def test_a_child_has_the_marker_no_input_and_a_session_of_its_own(own: Session, tmp_path: Path) -> None:
    log = tmp_path / "said"
    script = "import os, sys; print(dict(os.environ), sys.stdin.read() == '', os.getsid(0) == os.getpid())"
    child = own.spawn([sys.executable, "-c", script], name="child", log=log, env={"A": "b"}, cwd=tmp_path)
    assert child.wait(60) == 0
    said = log.read_text()
    assert f"'{reaper.MARKER}': '{own.id}'" in said
    assert "'A': 'b'" in said
    assert "HOME" not in said
    assert said.endswith("True True\n")


@pytest.mark.subprocess
def test_children_that_have_ended_are_not_kept_until_the_session_ends(own: Session, tmp_path: Path) -> None:
    def spawn(script: str) -> subprocess.Popen[bytes]:
        return own.spawn(["sh", "-c", script], name="child", log=tmp_path / "log", env=PLAIN)

    alive = spawn("sleep 60")
    for _ in range(5):
        assert spawn("true").wait(60) == 0
    last = spawn("sleep 60")
    children = [each for each in gc.get_objects() if isinstance(each, subprocess.Popen)]
    assert [each.args for each in children if isinstance(each.args, list) and each.args[-1] == "true"] == []
    assert alive.poll() is None and last.poll() is None


@pytest.mark.subprocess
def test_a_program_that_is_not_there_is_one_clear_error(own: Session, tmp_path: Path) -> None:
    with pytest.raises(StackError, match="cannot start ghost"):
        own.spawn(["/no/such/program"], name="ghost", log=tmp_path / "log", env={})


@pytest.mark.subprocess
def test_end_asks_before_it_kills(own: Session, tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = "trap 'echo asked; exit 3' TERM; echo set; while :; do sleep 0.01; done"
    child = sleeper(own, tmp_path, script)
    wait.until("the trap", lambda: "set" in log.read_text(), within_s=60.0)
    own.end(child, grace_s=60.0)
    assert child.poll() == 3
    assert "asked" in log.read_text()
    own.end(child)


@pytest.mark.subprocess
def test_end_kills_what_does_not_listen_and_everything_under_it(own: Session, tmp_path: Path) -> None:
    token = new_token()
    script = f"trap '' TERM; setsid sleep 3600.{token} & sleep 3601.{token}; sleep 3602.{token}"
    child = sleeper(own, tmp_path, script)
    wait.until("two sleepers", lambda: len(living(token)) == 2, within_s=60.0)
    own.end(child, grace_s=0.1)
    assert child.poll() == -signal.SIGKILL
    assert not living(token)


@pytest.mark.subprocess
def test_a_tree_that_forks_all_the_time_is_felled_whole(own: Session, tmp_path: Path) -> None:
    for _ in range(10):
        token = new_token()
        child = sleeper(own, tmp_path, f"while :; do env -i setsid sleep 3600.{token} & env -i sleep 0.01; done")
        wait.until("sleepers", partial(living, token), within_s=60.0)
        own.end(child)
        assert not living(token)


@pytest.mark.subprocess
def test_a_pid_that_was_given_out_again_is_never_struck(own: Session, tmp_path: Path) -> None:
    child = sleeper(own, tmp_path)
    now = reaper.identify(child.pid)
    assert now is not None
    injected = [reaper.send(ProcessId(now.pid, now.start - back), signal.SIGKILL) for back in range(1, 1001)]
    assert not any(injected)
    line = Path(f"/proc/{now.pid}/stat").read_text()
    assert str(now.start) in line
    older = line.replace(str(now.start), str(now.start - 1))
    (own.folder / reaper.RECORD).write_text(f"{older}nonsense\n{line[:40]}")
    processes = reaper.SessionProcesses("nobody's", str(own.folder))
    assert processes.victims() == set()
    assert child.poll() is None
    assert reaper.send(now, signal.SIGKILL)
    assert child.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize("pid", [-1, 0, 1])
def test_no_signal_goes_to_groups_or_to_init(pid: int) -> None:
    seen = reaper.row(1)
    assert seen is not None
    assert not reaper.send(ProcessId(pid, seen.id.start), 0)


def test_the_hunter_never_hunts_itself_or_its_parents(tmp_path: Path) -> None:
    parents = [os.getpid(), os.getppid()]
    (tmp_path / reaper.RECORD).write_text("".join(Path(f"/proc/{pid}/stat").read_text() for pid in parents))
    pids = {victim.pid for victim in reaper.SessionProcesses("none", str(tmp_path)).victims()}
    assert not pids & set(parents)


def test_somebody_elses_folder_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"onceproof-{os.getuid()}").symlink_to(elsewhere)
    with pytest.raises(StackError, match="our own folder"):
        session.root(temporary=tmp_path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match="set TMPDIR"):
        session.root(temporary=tmp_path / "file")


def test_a_full_disk_is_refused_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "NEED_BYTES", 1 << 60)
    with pytest.raises(HarnessError, match="free some space"):
        session.need_space(tmp_path, count=1 << 60)


@given(parents=st.lists(st.integers(min_value=0, max_value=30), max_size=30), roots=st.sets(st.integers(2, 32)))
def test_descendants_are_the_closure_over_parents(parents: list[int], roots: set[int]) -> None:
    rows = {pid: Row(ProcessId(pid, 7), parent, "S", "x") for pid, parent in enumerate(parents, start=2)}
    expected = {pid for pid in roots if pid in rows}
    while more := {pid for pid, seen in rows.items() if seen.parent in expected} - expected:
        expected |= more
    found = reaper.descendants(rows, {ProcessId(pid, 7) for pid in roots})
    assert {each.pid for each in found} == expected
    assert reaper.descendants(rows, {ProcessId(pid, 8) for pid in roots}) == set()


def words(*argv: str) -> str:
    return json.dumps({"argv": list(argv), "env": {"PATH": os.defpath}})


def test_last_words_are_said_once_the_session_ends(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with Session(temporary=tmp_path) as made:
        made.at_the_end(words("/bin/sh", "-c", f"echo said >> {said}"))
        assert (made.folder / reaper.CLOSING_MESSAGE).stat().st_mode & 0o777 == 0o600
        assert not said.exists()
    assert said.read_text() == "said\n"
    assert not made.folder.exists()


def test_last_words_that_have_nothing_to_do_are_not_said(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with Session(temporary=tmp_path) as made:
        made.at_the_end(words("/bin/sh", "-c", f"echo said >> {said}"))
        made.nothing_left()
    assert not said.exists()


def test_last_words_that_fail_are_said_again_by_the_next_start(tmp_path: Path) -> None:
    open_now = tmp_path / "open"
    with Session(temporary=tmp_path) as made:
        made.at_the_end(words("/bin/sh", "-c", f"test -e {open_now}"))
    assert made.folder.exists(), "what could not be ended is not forgotten"
    open_now.touch()
    with Session(temporary=tmp_path) as later:
        assert made.id in later.swept
    assert not made.folder.exists()


@pytest.mark.parametrize(("said", "old"), [("", False), ("{}", False), (words("/bin/false"), True)])
def test_last_words_that_can_never_be_said_do_not_stay(tmp_path: Path, said: str, old: bool) -> None:
    folder = tmp_path / "s-1"
    folder.mkdir()
    last = folder / reaper.CLOSING_MESSAGE
    last.write_text(said)
    if old:
        os.utime(last, (0, 0))
    assert reaper.run_closing_messages(str(folder))


def test_last_words_that_fail_say_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / reaper.CLOSING_MESSAGE).write_text(words("/bin/sh", "-c", "echo first >&2; echo why >&2; exit 1"))
    assert not reaper.run_closing_messages(str(tmp_path))
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("onceproof: could not clean up after an earlier run: why; each start tries again for a day")
