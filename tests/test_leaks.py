"""However a running `onceproof run` ends (`kill -9` of it, of its reaper, of both; Ctrl-C, SIGTERM), nothing is left.

`ONCEPROOF_KILLS` sets how many times (default 3); the moments are drawn from a seed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import psutil
import pytest

from harness.components.azure.process import free_port, port_lock
from harness.errors import WaitError
from harness.load import load
from harness.session import reaper
from harness.wait import Waiting, locked, until
from tests.limits import PROCESS_S

pytestmark = pytest.mark.stack
HOUSE = Path(__file__).parents[1]
SCENARIO = HOUSE / "scenarios" / "proving" / "upsert_before_offset_commit.yaml"
ON_S3 = HOUSE / "scenarios" / "s3" / "checkpoint_upsert_mid_batch.yaml"
ON_AZURE = HOUSE / "scenarios" / "azure" / "checkpoint_upsert_mid_batch.yaml"
ON_EVENTHUBS = HOUSE / "scenarios" / "eventhubs" / "hub_kept_by_id_before_offset_commit.yaml"
ON_HDFS = HOUSE / "scenarios" / "hadoop" / "hdfs_upsert_before_offset_commit.yaml"
ON_MINIDFS = HOUSE / "scenarios" / "hadoop" / "minidfs_upsert_before_offset_commit.yaml"
INTO_MARIADB, INTO_OPENSEARCH = "mariadb_kept_by_id_mid_sink", "opensearch_away_kept_by_id"
MARIADB, OPENSEARCH, S3, MINIDFS = "mariadbd", "SimpleCompiler", "s3proxy.Main", "minidfs/Launcher.java"
AZURITE = "azurite/dist/src/blob/main.js"
"""What stands in the command line of the server."""
KILLS = int(os.environ.get("ONCEPROOF_KILLS", "3"))
MARK = b"ONCEPROOF_LEAK_TEST="
LISTENS = "0A"
"""The state of a socket in /proc/net/tcp."""


def into(name: str) -> Path:
    """A scenario that asks for another server."""
    return HOUSE / "scenarios" / "sinks" / f"{name}.yaml"


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
            found.append(f"{folder.name} {command.replace(bytes(1), b' ').decode(errors='replace')}")
    return found


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A temporary folder for the sessions of one run. Not pytest's own: Postgres, another user, must get through."""
    folder = Path(tempfile.mkdtemp(prefix="onceproof-leaks-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def start(temporary: Path, word: str, *more: str, scenario: Path = SCENARIO) -> subprocess.Popen[bytes]:
    """`onceproof run`, in a temporary folder of its own, so that its sessions can be told from others'."""
    environment = {**os.environ, MARK.decode().rstrip("="): word, "TMPDIR": str(temporary)}
    argv = [sys.executable, "-m", "harness", "run", str(scenario), "--reports", str(temporary / "reports"), *more]
    with (temporary / "said").open("wb") as said:
        return subprocess.Popen(
            argv, env=environment, cwd=HOUSE, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
        )


Sockets = Mapping[str, int]
"""Each that somebody listens on, as the system numbers it, with its port: a port that is free again is soon another's,
as two stacks are up at once where the tests run in two processes."""


def listeners() -> Sockets:
    """Those of this machine."""
    tables = [path for path in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if path.exists()]
    rows = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]": int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == LISTENS}


def listening(word: str) -> Sockets:
    """Those of these processes."""
    held = set()
    for each in ours(word):
        # A process may end, or close one, meanwhile.
        with contextlib.suppress(OSError):
            for link in Path(f"/proc/{each.split()[0]}/fd").iterdir():
                with contextlib.suppress(OSError):
                    held.add(str(link.readlink()))
    return {name: port for name, port in listeners().items() if name in held}


def begun(temporary: Path) -> list[Path]:
    """Folders of sessions that started something; an empty one is swept by the next start."""
    return [folder for folder in temporary.glob("*/s-*") if (folder / reaper.RECORD).exists()]


def nobody(word: str, sockets: Sockets = MappingProxyType({})) -> bool | Waiting:
    held = [f"port {port} is held" for _, port in sorted(listeners().items() & sockets.items())]
    left = [each[:200] for each in ours(word)] + held
    return Waiting("; ".join(left)) if left else True


def next_start(temporary: Path) -> None:
    """What every `onceproof run` does first: open a session, which sweeps those of the dead."""
    code = "from harness.session.session import Session; Session().close()"
    environment = {**os.environ, "TMPDIR": str(temporary)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=PROCESS_S)


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.prove if number else ()) for number in range(KILLS)]
)
def test_kill_9_of_a_run_leaves_nothing(temporary: Path, number: int) -> None:
    moment = random.Random(f"harness {number}").uniform(0.3, 18.0)
    word = temporary.name
    harness = start(temporary, word)
    try:
        with_deadline(harness, moment)
        sockets = listening(word)
    finally:
        harness.kill()
        harness.wait(PROCESS_S)
    what = f"nothing of the run killed after {moment:.2f} s to live"
    until(what, lambda: nobody(word, sockets), within_s=PROCESS_S)
    until("its session's folder to be gone", lambda: not begun(temporary), within_s=PROCESS_S)


def killed_once(temporary: Path, harness: subprocess.Popen[bytes], what: str, there: Callable[[], object]) -> None:
    """Kill the run as soon as `what` is there; nothing is left of it."""
    word = temporary.name
    try:
        until(what, there, within_s=PROCESS_S)
        sockets = listening(word)
    finally:
        harness.kill()
        harness.wait(PROCESS_S)
    until("nothing to live", lambda: nobody(word, sockets), within_s=PROCESS_S)
    until("its session's folder to be gone", lambda: not begun(temporary), within_s=PROCESS_S)


@pytest.mark.prove
@pytest.mark.parametrize(
    ("scenario", "program", "server"),
    [
        (into(INTO_MARIADB), "kept_by_id.py", MARIADB),
        (into(INTO_OPENSEARCH), "indexed_by_id.py", OPENSEARCH),
        (ON_HDFS, "upsert.py", "datanode.DataNode"),
        (ON_MINIDFS, "upsert.py", MINIDFS),
        (ON_S3, "upsert.py", S3),
        (ON_EVENTHUBS, "upsert.py", "kafka.Kafka"),
    ],
    ids=lambda each: each.stem if isinstance(each, Path) else "",
)
def test_kill_9_of_a_run_leaves_no_server_that_it_alone_asked_for(
    temporary: Path, scenario: Path, program: str, server: str
) -> None:
    harness = start(temporary, temporary.name, scenario=scenario)
    killed_once(temporary, harness, "its pipeline to run", lambda: runs(temporary.name, program, server))


def runs(word: str, program: str, server: str) -> bool:
    """Return whether the pipeline runs, and the server that it asked for."""
    pipeline = any(program in each for each in ours(word))
    assert not pipeline or any(server in each for each in ours(word))
    return pipeline


@pytest.mark.prove
def test_kill_9_of_a_run_leaves_nothing_of_azurite(temporary: Path) -> None:
    harness, word = start(temporary, temporary.name, scenario=ON_AZURE), temporary.name
    held = False

    def both() -> bool:
        nonlocal held
        there = runs(word, "upsert.py", AZURITE)
        held = there and port_is_held()
        return there

    killed_once(temporary, harness, "its pipeline to run", both)
    assert held, "the lock was free while the emulator ran"
    # Whoever comes next has the lock, and the port.
    with locked(port_lock(), within_s=PROCESS_S):
        free_port().release()


def port_is_held() -> bool:
    """Return whether a harness has the port of the one emulator."""
    try:
        with locked(port_lock(), within_s=0.0):
            return False
    except WaitError:
        return True


@pytest.mark.parametrize("number", range(max(1, KILLS // 3)))
def test_kill_9_of_reaper_and_run_leaves_nothing_after_the_next_starts_sweep(temporary: Path, number: int) -> None:
    moment = random.Random(f"reaper {number}").uniform(1.5, 18.0)
    word = temporary.name
    harness, watcher = start(temporary, word), 0
    try:
        with_deadline(harness, moment)
        # The run first: a reaper that dies alone is replaced at once.
        harness.send_signal(signal.SIGSTOP)
        sockets = listening(word)
        watcher = reaper_of(harness)
        if watcher:
            psutil.Process(watcher).kill()
    finally:
        harness.kill()
        harness.wait(PROCESS_S)
    assert watcher or not ours(word), "it was killed before it had a reaper, and yet something runs"
    next_start(temporary)
    what = f"nothing of the run killed after {moment:.2f} s to live"
    until(what, lambda: nobody(word, sockets), within_s=PROCESS_S)


def test_a_reaper_that_is_killed_alone_is_replaced(temporary: Path) -> None:
    word = temporary.name
    harness = start(temporary, word)
    try:
        # Killed before it has answered, it is not replaced: then the harness refuses to start anything.
        until("something to be started", lambda: any("postgres" in each for each in ours(word)), within_s=PROCESS_S)
        first = until("a reaper", lambda: reaper_of(harness), within_s=PROCESS_S)
        psutil.Process(first).kill()
        until("another reaper", lambda: reaper_of(harness) not in (0, first), within_s=PROCESS_S)
    finally:
        harness.kill()
        harness.wait(PROCESS_S)
    until("nothing to live", lambda: nobody(word), within_s=PROCESS_S)


@pytest.mark.parametrize(
    "signals",
    [pytest.param(("SIGINT",), marks=pytest.mark.prove), ("SIGINT", "SIGINT"), ("SIGTERM",)],
    ids="+".join,
)
def test_an_interrupted_run_says_so_once_and_leaves_nothing(temporary: Path, signals: tuple[str, ...]) -> None:
    word = temporary.name
    harness = start(temporary, word)
    try:
        until("the pipeline to run", lambda: any("upsert.py" in each for each in ours(word)), within_s=PROCESS_S)
        sockets = listening(word)
        for each in signals:
            # A terminal sends Ctrl-C to the whole group.
            os.killpg(harness.pid, signal.Signals[each])
        harness.wait(PROCESS_S)
    finally:
        harness.kill()
    until("nothing to live", lambda: nobody(word, sockets), within_s=PROCESS_S)
    assert harness.returncode == 130
    progress, _, error = (temporary / "said").read_text().strip().rpartition("\n")
    assert error == f"Error: interrupted by {signals[0]}; nothing was judged after that"
    assert progress.splitlines()[-1].endswith(("warm-up", "feeding"))
    assert not begun(temporary)
    run = next((temporary / "reports").glob("*/latest/run.json"))
    assert "interrupted by" in json.loads(run.read_text())["outcome"]["error"]


@pytest.mark.parametrize(
    ("server", "word_of_it", "scenario"),
    [
        ("kafka", "kafka.Kafka", SCENARIO),
        pytest.param("postgres", "/postgres -D", SCENARIO, marks=pytest.mark.prove),
        pytest.param("mariadb", MARIADB, into(INTO_MARIADB), marks=pytest.mark.prove),
        pytest.param("opensearch", OPENSEARCH, into(INTO_OPENSEARCH), marks=pytest.mark.prove),
        pytest.param("s3", S3, ON_S3, marks=pytest.mark.prove),
        pytest.param("namenode", "namenode.NameNode", ON_HDFS, marks=pytest.mark.prove),
        pytest.param("datanode", "datanode.DataNode", ON_HDFS, marks=pytest.mark.prove),
        pytest.param("minidfs", MINIDFS, ON_MINIDFS, marks=pytest.mark.prove),
        pytest.param("eventhubs", "kafka.Kafka", ON_EVENTHUBS, marks=pytest.mark.prove),
        pytest.param("azure", AZURITE, ON_AZURE, marks=pytest.mark.prove),
    ],
    ids=lambda each: each.stem if isinstance(each, Path) else each,
)
def test_a_server_that_dies_though_nobody_hurt_it_is_an_error_and_no_verdict(
    temporary: Path, server: str, word_of_it: str, scenario: Path
) -> None:
    word, program = temporary.name, Path(load(scenario).pipeline.entry).name
    harness = start(temporary, word, "--keep", "all", scenario=scenario)
    try:
        until("the pipeline to run", lambda: any(program in each for each in ours(word)), within_s=PROCESS_S)
        (victim,) = [int(each.split()[0]) for each in ours(word) if word_of_it in each]
        os.kill(victim, signal.SIGKILL)
        assert harness.wait(PROCESS_S) == 4
    finally:
        harness.kill()
    assert f"{server} ended with signal 9" in (temporary / "said").read_text()
    assert not [*(temporary / "reports").glob("*/latest/verdict.json")]
    until("nothing to live", lambda: nobody(word), within_s=PROCESS_S)


def reaper_of(harness: subprocess.Popen[bytes]) -> int:
    """The pid of its living reaper; 0 if it has none."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(harness.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.status() != psutil.STATUS_ZOMBIE and any("reaper.py" in word for word in child.cmdline()):
                    return child.pid
    return 0


def with_deadline(harness: subprocess.Popen[bytes], seconds: float) -> None:
    """Let it run for `seconds`, or to its end on a fast machine; a run that failed shows nothing."""
    timer = threading.Event()
    threading.Timer(seconds, timer.set).start()
    until("the moment", lambda: timer.is_set() or harness.poll() is not None, within_s=seconds + PROCESS_S)
    assert harness.poll() in (None, 0), f"it failed by itself with {harness.poll()} before it could be killed"
