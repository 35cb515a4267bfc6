"""Our own cache: jars and class archives that outlive a run, shared by every run of this user.

Filled so that two suites at once cannot collide: under a lock, into a temporary folder, which is then renamed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import wait
from harness.errors import StackError

VARIABLE = "ONCEPROOF_CACHE"


def root() -> Path:
    """Where the cache lies, whether or not it is there yet."""
    if own := os.environ.get(VARIABLE):
        return Path(own).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(shared).expanduser().absolute() / "onceproof"


def folder(*parts: str) -> Path:
    """A folder of the cache, made when missing and open to this user only. Raises StackError when it cannot be made."""
    path = root()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for part in ("", *parts):
            path = path / part
            path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StackError(f"cannot make the cache folder {path}: {error.strerror}; set {VARIABLE} to another") from error
    return path


@contextmanager
def locked(path: Path, *, within_s: float) -> Iterator[None]:
    """Hold the lock file `path` alone among all processes. The system lets go of it when its holder dies.

    Raises WaitError when another process holds it for longer than `within_s` seconds."""
    with path.open("a+", encoding="utf-8") as file:

        def taken() -> bool | wait.Waiting:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return wait.Waiting(f"{path} held by another process")
            return True

        wait.until(f"the lock {path.name} of the cache", taken, within_s=within_s)
        yield


@contextmanager
def filling(target: Path) -> Iterator[Path]:
    """A temporary folder that becomes `target` when the block ends well, and is gone when it does not.

    Hold the lock of `target` around this. What was at `target` before is replaced."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield temporary
        shutil.rmtree(target, ignore_errors=True)
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
