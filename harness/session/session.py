"""A session: one harness, everything it starts, and the certainty that all of it ends.

Every child carries the session's id in its environment and its (pid, start time) is recorded in the session's
folder. A reaper process watches the harness and cleans up when it is gone, however it went; nothing is started
before the reaper has answered. A session whose harness and reaper were both killed is swept at the next start.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from harness import wait
from harness.errors import HarnessError, StackError
from harness.session import reaper

ACK_S = 10.0
CLOSE_S = 10.0
NEED_BYTES = 512 * 1024 * 1024
PREFIX = "s-"
LOCK = "owner.lock"
# A child records itself before it becomes the program: the harness might be killed before it could do that, and a
# program may throw its environment away at once.
RECORD_AND_BECOME = 'read -r line < /proc/$$/stat && printf "%s\\n" "$line" >> "$0"; exec "$@"'


def root(*, temporary: Path | None = None) -> Path:
    """`<tmp>/onceproof-<uid>`, made when missing. Root's may be passed through, because Postgres runs as another user.

    Raises StackError when another process has the name."""
    base = (temporary or Path(tempfile.gettempdir())) / f"onceproof-{os.getuid()}"
    mode = 0o711 if os.getuid() == 0 else 0o700
    try:
        base.mkdir(mode=mode, parents=True, exist_ok=True)
        owner = base.lstat().st_uid
        if base.is_symlink() or owner != os.getuid():
            raise StackError(f"{base} must be our own folder, but belongs to uid {owner}; set TMPDIR to another place")
        base.chmod(mode)
    except OSError as error:
        raise StackError(f"cannot make the state folder {base}: {error.strerror}; set TMPDIR elsewhere") from error
    return base


def need_space(folder: Path, *, count: int = NEED_BYTES) -> None:
    """Raise HarnessError unless `count` bytes are free where `folder` lies."""
    free = shutil.disk_usage(folder).free
    if free < count:
        raise HarnessError(
            f"needs {count >> 20} MiB free at {folder}, found {free >> 20} MiB; free some space or name another place"
        )


def claim(base: Path) -> list[tuple[Path, IO[str]]]:
    """Return the folders of dead sessions under `base`, each with its lock, now ours. A living session holds its
    lock."""
    found: list[tuple[Path, IO[str]]] = []
    for folder in sorted(base.glob(PREFIX + "*")):
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            lock = held.enter_context((folder / LOCK).open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.append((folder, lock))
            held.pop_all()
    return found


def sweep(dead: list[tuple[Path, IO[str]]]) -> list[str]:
    """End what dead sessions left; their ids."""
    for folder, lock in dead:
        with lock:
            reaper.clean(reaper.SessionProcesses(folder.name, str(folder)), quiet_s=reaper.QUIET_S)
    return [folder.name for folder, _ in dead]


def private(path: Path, text: str) -> Path:
    """Write a file that only we may read: whole, or not at all."""
    temporary = path.with_name(f".{path.name}")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)
    temporary.write_text(text, encoding="utf-8")
    return temporary.rename(path)


class Session:
    """`Session()` sweeps, makes the folder and arms the reaper. Close it, or use it in a `with` block.

    Raises StackError when no reaper answers (nothing was started then), HarnessError when the disk is full."""

    def __init__(self, *, temporary: Path | None = None, reaper_argv: Sequence[str] | None = None) -> None:
        self.root = root(temporary=temporary)
        need_space(self.root)
        self.id = PREFIX + secrets.token_hex(6)
        self.folder = self.root / self.id
        self.rearmed = 0
        """How many dead reapers were replaced."""
        self._reaper_argv = tuple(reaper_argv or (sys.executable, "-I", "-S", reaper.__file__))
        self._children: list[subprocess.Popen[bytes]] = []
        self._lock = threading.RLock()
        self._closed = False
        self._owner = os.getpid()
        # A session is made whole before a sweep may read it.
        with wait.locked(self.root / ".lock", within_s=60.0):
            dead = claim(self.root)
            self.folder.mkdir(mode=self.root.stat().st_mode & 0o777)
            self._owner_lock: IO[str] = (self.folder / LOCK).open("a")
            fcntl.flock(self._owner_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            # Not under the root's lock: what they left may take a minute to answer, and others start meanwhile.
            self.swept = sweep(dead)
            self._reaper = self._arm()
        except BaseException:
            self._forget()
            raise
        threading.Thread(target=self._watch, name="onceproof-reaper-watch", daemon=True).start()

    def spawn(
        self,
        argv: Sequence[str],
        *,
        name: str,
        log: Path,
        env: Mapping[str, str],
        cwd: Path | None = None,
        user: int | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a child in its own process group; its output goes to the end of `log`.

        `env` is its whole environment, to which the session's marker is added. `user` is a uid to run as. Raises
        StackError when the session is closed or unprotected, or when the program cannot be started."""
        self.guard()
        if shutil.which(argv[0], path=env.get("PATH", os.defpath)) is None:
            raise StackError(f"cannot start {name}: there is no program {argv[0]}")
        marked = {**env, reaper.MARKER: self.id}
        group = None
        if user is None:
            argv = ["/bin/sh", "-c", RECORD_AND_BECOME, str(self.folder / reaper.RECORD), *argv]
        else:
            group = pwd.getpwuid(user).pw_gid
        with log.open("ab") as output, self._lock:
            if self._closed:  # while we waited for the lock: nothing would end it any more
                raise StackError("this session is closed; open a new one")
            try:
                child = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=marked, cwd=cwd,
                    start_new_session=True, user=user, group=group, extra_groups=[] if user is not None else None,
                )  # fmt: skip
            except OSError as error:
                raise StackError(f"cannot start {name}: {error}") from error
            # Those that were seen to end need no waiting for: a session of many runs would keep them all.
            self._children = [*(each for each in self._children if each.returncode is None), child]
        if user is not None:  # which may not write into our folder
            self._record(child)
        return child

    def at_the_end(self, words: str, *, of: str = "") -> None:
        """Have a command run when the session ends, however it ends: `{"argv": […], "env": {…}}` as JSON. `of` is whose
        it is: each has one, the stack's own is that of no run."""
        self.keep(_closing_message(of), words)

    def nothing_left(self, *, of: str = "") -> None:
        """The command of `at_the_end` has nothing to do any more."""
        (self.folder / _closing_message(of)).unlink(missing_ok=True)

    def keep(self, name: str, text: str) -> Path:
        """Write a file into the session's folder that only we may read: whole, or not at all."""
        return private(self.folder / name, text)

    def end(self, process: subprocess.Popen[bytes], *, grace_s: float = 0.0) -> None:
        """SIGTERM, `grace_s` seconds, then SIGKILL to the process and everything under it. Silent if it is gone."""
        top = reaper.identify(process.pid)
        if top is None or process.poll() is not None:
            return
        tree = reaper.descendants(reaper.table(), {top})
        if grace_s > 0:
            reaper.send(top, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace_s)
        reaper.fell(tree, within_s=CLOSE_S)
        process.wait(CLOSE_S)

    def guard(self) -> None:
        """Replace a dead reaper. Raises StackError when the session is closed or no reaper answers."""
        with self._lock:
            if self._closed or os.getpid() != self._owner:
                raise StackError(
                    "this session is closed, or belongs to the process that forked this one; open a new one"
                )
            if self._reaper.poll() is not None:
                _dismiss(self._reaper)
                self._reaper = self._arm()
                self.rearmed += 1

    @property
    def reaper_pid(self) -> int:
        """The pid of the reaper now on duty."""
        return self._reaper.pid

    def close(self) -> None:
        """End every process of the session, remove its folder, let the reaper go. Safe to call twice.

        In a fork of the harness it does nothing: the session is the parent's."""
        with self._lock:
            if self._closed or os.getpid() != self._owner:
                return
            self._closed = True
        # It may have a last command to say, which takes its time; killed in between, it would be said twice at once.
        last = len(reaper.closing_messages(str(self.folder)))
        more = reaper.LIMIT_S + last * reaper.CLOSING_MESSAGE_S if last else 0.0
        _dismiss(self._reaper, within_s=CLOSE_S + more)
        # The reaper has done this; if it was killed in between, this does.
        reaper.clean(reaper.SessionProcesses(self.id, str(self.folder)), quiet_s=0.01)
        for child in self._children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(1.0)
        self._forget()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _record(self, child: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(FileNotFoundError), (self.folder / reaper.RECORD).open("ab") as file:
            file.write(Path(f"/proc/{child.pid}/stat").read_bytes())

    def _arm(self) -> subprocess.Popen[bytes]:
        own = reaper.row(os.getpid())
        if own is None:
            raise StackError("needs /proc to watch over its processes and found none; run it on Linux")
        argv = [*self._reaper_argv, self.id, str(self.folder), str(own.id.pid), str(own.id.start)]
        with (self.folder / "reaper.log").open("ab") as log:
            watcher = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env={}, cwd="/", start_new_session=True
            )
        if not _answers(watcher):
            watcher.kill()
            _dismiss(watcher)
            log_text = (self.folder / "reaper.log").read_text(errors="replace").strip()[-500:]
            raise StackError(
                f"the reaper did not answer within {ACK_S:g} s, so nothing was started; it said: {log_text!r}"
            )
        return watcher

    def _watch(self) -> None:
        """Replace the reaper as soon as it dies, until the session is closed or no new one answers."""
        while not self._closed:
            watcher = self._reaper
            watcher.wait()
            with contextlib.suppress(StackError):
                self.guard()
            if watcher is self._reaper:
                return

    def _forget(self) -> None:
        # Last words that failed keep the folder for the next start's sweep.
        if not reaper.closing_messages(str(self.folder)):
            shutil.rmtree(self.folder, ignore_errors=True)
        self._owner_lock.close()


def _closing_message(of: str) -> str:
    return f"{of}-{reaper.CLOSING_MESSAGE}" if of else reaper.CLOSING_MESSAGE


def _answers(watcher: subprocess.Popen[bytes]) -> bool:
    assert watcher.stdout is not None
    ready, _, _ = select.select([watcher.stdout], [], [], ACK_S)
    return bool(ready) and os.read(watcher.stdout.fileno(), 16) == b"ready\n"


def _dismiss(watcher: subprocess.Popen[bytes], *, within_s: float = CLOSE_S) -> None:
    """Say goodbye to the reaper and wait for it; kill it when it hangs."""
    assert watcher.stdin is not None and watcher.stdout is not None
    with contextlib.suppress(OSError):
        os.write(watcher.stdin.fileno(), reaper.GOODBYE)
    for pipe in (watcher.stdin, watcher.stdout):
        with contextlib.suppress(OSError):
            pipe.close()
    try:
        watcher.wait(within_s)
    except subprocess.TimeoutExpired:
        watcher.kill()
        watcher.wait(CLOSE_S)
