"""The reaper: a small process that outlives the harness just long enough to end everything that it started.

It runs as a script (`python -I -S reaper.py SESSION FOLDER OWNER_PID OWNER_START`) and needs nothing but
the standard library, so it starts in milliseconds. It says `ready` on its output, then waits on its input. When
the harness closes that pipe or dies, it kills every process of the session, removes the session's folder and ends.

`harness.session.session` imports the same code to sweep sessions whose harness and reaper are both dead.
A process belongs to a session if its environment says so, or the session's folder records it. So does a process that
descends from one that belongs, and a Postgres process working inside the folder: Postgres overwrites its environment.
A process is always named by pid and start time, so a pid that was given out again is never struck. Linux only.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable
from typing import NamedTuple

MARKER = "ONCEPROOF_SESSION"
"""The environment variable that every process of a session carries."""
RECORD = "processes"
"""The file in the session's folder with the `/proc/PID/stat` line of every process that the harness started."""
CLOSING_MESSAGE = "closing-message.json"
"""How the files in the session's folder end that have a command which ends what is no process of ours, such as
containers."""
POSTMASTER = "postgres/data/postmaster.pid"
"""Where, in the session's folder, Postgres notes the key and the number of its shared memory (its seventh line)."""
GOODBYE = b"q"
"""What the harness writes before it closes the pipe in good order."""

CLOSING_MESSAGE_S = 60.0
FORGOTTEN_S = 24 * 3600.0
"""After which a last command that still fails is given up."""
QUIET_S = 0.3
QUIET_AFTER_GOODBYE_S = 0.05
LIMIT_S = 20.0


class ProcessId(NamedTuple):
    """One process: its pid, and its start in clock ticks since boot."""

    pid: int
    start: int


class Row(NamedTuple):
    """One line of the process table. `state` is the kernel's letter, `Z` for a zombie."""

    id: ProcessId
    parent: int
    state: str
    name: str


def parse(text: bytes) -> Row | None:
    """Return a line of `/proc/PID/stat`; None if it is torn."""
    try:
        opened, closed = text.index(b"("), text.rindex(b")")
        fields = text[closed + 2 :].split()
        name = text[opened + 1 : closed].decode(errors="replace")
        return Row(ProcessId(int(text[:opened]), int(fields[19])), int(fields[1]), fields[0].decode(), name)
    except (ValueError, IndexError):
        return None


def row(pid: int) -> Row | None:
    """Return what the kernel says about `pid` now; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib would double the start-up time)
            return parse(file.read())
    except OSError:
        return None


def identify(pid: int) -> ProcessId | None:
    """Return the process that has `pid` now; None if there is none or it is a zombie."""
    seen = row(pid)
    return seen.id if seen and seen.state not in "ZX" else None


def table() -> dict[int, Row]:
    """Return every living process by pid, zombies left out."""
    rows = (row(int(name)) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    return {seen.id.pid: seen for seen in rows if seen and seen.state not in "ZX"}


def descendants(rows: dict[int, Row], roots: Iterable[ProcessId]) -> set[ProcessId]:
    """Return the living among `roots`, and everything under them."""
    children: dict[int, list[Row]] = {}
    for seen in rows.values():
        children.setdefault(seen.parent, []).append(seen)
    found: set[ProcessId] = set()
    todo = [root for root in roots if root.pid in rows and rows[root.pid].id == root]
    while todo:
        parent = todo.pop()
        if parent not in found:
            found.add(parent)
            todo += [child.id for child in children.get(parent.pid, ())]
    return found


def send(victim: ProcessId, number: int) -> bool:
    """Signal exactly this process. False if it is gone or not ours to signal."""
    if victim.pid <= 1:
        return False
    try:
        handle = os.pidfd_open(victim.pid)
    except OSError:
        return False
    try:
        # The handle was taken before this reading: if it agrees, the handle is that process and no later one.
        if identify(victim.pid) != victim:
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def fell(roots: set[ProcessId], *, within_s: float) -> set[ProcessId]:
    """Kill `roots` and everything under them; what is left when the time is up (nothing, as a rule).

    All are stopped before any is killed: one that runs could fork in between, and its child would be lost."""
    pause, end = threading.Event(), time.monotonic() + within_s
    known, calm = set(roots), 0
    while calm < 2 and time.monotonic() < end:
        rows = table()
        grown = descendants(rows, known)
        # D: it waits in the kernel, for a stopped child that is not yet its program; it will stop as it leaves.
        still = grown <= known and all(rows[victim.pid].state in "tTD" for victim in grown)
        calm = calm + 1 if still else 0
        known |= grown
        _send_all(grown, signal.SIGSTOP)
        pause.wait(0.001)
    while (left := descendants(table(), known)) and time.monotonic() < end + 1.0:
        _send_all(left, signal.SIGKILL)
        pause.wait(0.002)
    return left


def _send_all(victims: set[ProcessId], number: int) -> None:
    """Parents first: a shell goes on to its next command when its child dies before it."""
    for victim in sorted(victims, key=lambda each: each.start):
        send(victim, number)


class SessionProcesses:
    """Finds the processes of one session; remembers what it found, so that a child cannot hide by losing its parent."""

    def __init__(self, session: str, folder: str) -> None:
        self.folder = folder
        self._mark = f"{MARKER}={session}"
        self._known: set[ProcessId] = set()

    def learn(self) -> None:
        """Remember what descends from the recorded processes. Cheap: reads no environment."""
        self._known = descendants(table(), self._known | self._recorded())

    def victims(self) -> set[ProcessId]:
        """Return every living process of the session, but never the one that asks nor any it descends from."""
        rows = table()
        roots = self._known | self._recorded() | {seen.id for seen in rows.values() if self._marked(seen)}
        self._known = descendants(rows, roots)
        return {victim for victim in self._known if victim.pid not in _ancestry(rows)}

    def _recorded(self) -> set[ProcessId]:
        try:
            with open(os.path.join(self.folder, RECORD), "rb") as lines:  # noqa: PTH118, PTH123
                rows = [parse(line) for line in lines]
        except OSError:
            return set()
        return {seen.id for seen in rows if seen}

    def _marked(self, seen: Row) -> bool:
        try:
            if seen.name == "postgres":
                return os.readlink(f"/proc/{seen.id.pid}/cwd").startswith(self.folder + "/")  # noqa: PTH115
        except OSError:
            return False
        return carries(seen.id.pid, self._mark)


def carries(pid: int, *marks: str) -> bool:
    """Return whether the environment that the process began with holds each of the marks (`NAME=value`)."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            found = b"\0" + file.read()
    except OSError:
        return False
    return all(f"\0{mark}\0".encode() in found for mark in marks)


def _ancestry(rows: dict[int, Row]) -> set[int]:
    pid, found = os.getpid(), {0, 1}
    while pid not in found:
        found.add(pid)
        pid = rows[pid].parent if pid in rows else 0
    return found


def clean(processes: SessionProcesses, *, quiet_s: float) -> set[ProcessId]:
    """Kill until nothing of the session was seen for `quiet_s`, then remove its folder. Returns what is left (nothing,
    unless a process is not ours to kill)."""
    pause = threading.Event()
    end = time.monotonic() + LIMIT_S
    quiet_since = time.monotonic()
    left: set[ProcessId] = set()
    while time.monotonic() < end and time.monotonic() - quiet_since < quiet_s:
        left = processes.victims()
        _send_all(left, signal.SIGKILL)
        if left:
            quiet_since = time.monotonic()
        pause.wait(0.01)
    free_shared_memory(processes.folder)
    # If they fail, the folder stays, and the next start's sweep runs them again.
    if run_closing_messages(processes.folder):
        shutil.rmtree(processes.folder, ignore_errors=True)
    return left


def closing_messages(folder: str) -> list[str]:
    """Return the files with a last command of the session."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []
    # Not the hidden ones, which are half written.
    own = [name for name in names if name.endswith(CLOSING_MESSAGE) and not name.startswith(".")]
    return [os.path.join(folder, name) for name in own]  # noqa: PTH118


def run_closing_messages(folder: str) -> bool:
    """Run each of the session's last commands to its end. Return True unless one failed."""
    done = [_run_closing_message(path, folder) for path in closing_messages(folder)]
    return all(done)


def _run_closing_message(path: str, folder: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return True
    import json  # slow to load, and only needed here
    import subprocess

    try:
        words = json.loads(text)
        subprocess.run(
            words["argv"],
            env=words["env"],
            cwd="/",
            timeout=CLOSING_MESSAGE_S,
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        old = time.time() - os.stat(path).st_mtime > FORGOTTEN_S  # noqa: PTH116
        error_text = str(getattr(error, "stderr", None) or error).strip().splitlines()[-1:]
        then = "it is given up" if old else f"each start tries again for a day, or until you remove {folder}"
        print(f"onceproof: could not clean up after an earlier run: {''.join(error_text)}; {then}", file=sys.stderr)
        return old
    except (ValueError, KeyError):
        return True  # torn: it is not known what it was
    return True


def free_shared_memory(folder: str) -> None:
    """Remove the System V segment that a killed Postgres leaves in the kernel: nothing else would, before a reboot."""
    try:
        with open(os.path.join(folder, POSTMASTER), encoding="ascii") as file:  # noqa: PTH118, PTH123
            key, number = file.read().splitlines()[6].split()
        with open("/proc/sysvipc/shm", encoding="ascii") as file:  # noqa: PTH123
            segments = [line.split() for line in file]
    except (OSError, ValueError, IndexError):
        return
    # Columns: key, shmid, perms, size, cpid, lpid, nattch, … The number alone could have been given out again.
    if any(segment[:2] == [key, number] and segment[6] == "0" for segment in segments):
        import ctypes  # slow to load, and only needed here

        ctypes.CDLL(None).shmctl(int(number), 0, None)


def wait_for_the_end(processes: SessionProcesses, owner: ProcessId) -> bool:
    """Return when the harness is gone; True if it said goodbye."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    # The pipe alone is not enough: a fork of the harness that never calls exec would hold it open.
    handle = os.pidfd_open(owner.pid)
    poll.register(handle, select.POLLIN)
    goodbye = False
    while identify(owner.pid) == owner:
        events = dict(poll.poll(2000))
        if 0 in events:
            received = os.read(0, 16)
            if not received:
                return goodbye
            goodbye = goodbye or GOODBYE in received
        if not events:
            processes.learn()
    return goodbye


def main() -> None:
    """Say `ready`, wait for the harness's end, clean up after it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    session, folder, pid, start = sys.argv[1:5]
    processes = SessionProcesses(session, folder)
    try:
        os.write(1, b"ready\n")
        os.close(1)
        goodbye = wait_for_the_end(processes, ProcessId(int(pid), int(start)))
    except OSError:  # the harness was gone before this could answer, or before it could be watched
        goodbye = False
    clean(processes, quiet_s=QUIET_AFTER_GOODBYE_S if goodbye else QUIET_S)


if __name__ == "__main__":
    main()
