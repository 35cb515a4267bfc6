"""Our own cache: jars, class archives and baseline runs that outlive a run, shared by every run of this user.

Filled so that two suites at once cannot collide: under a lock, into a temporary folder, which is then renamed.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path

from harness.errors import StackError

VARIABLE = "ONCEPROOF_CACHE"
SUMS = ".sums.json"


def root() -> Path:
    """Return where the cache lies, whether or not it is there yet."""
    if own := os.environ.get(VARIABLE):
        return Path(own).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(shared).expanduser().absolute() / "onceproof"


def folder(*parts: str) -> Path:
    """Return a folder of the cache, made when missing and open to this user only. Raises StackError when it cannot be
    made."""
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
def filling(target: Path) -> Iterator[Path]:
    """A temporary folder that becomes `target` when the block ends well, and is gone when it does not.

    Hold the lock of `target` around this. What was at `target` before is replaced."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield temporary
        shutil.rmtree(target, ignore_errors=True)
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def keep(source: Path, target: Path) -> None:
    """Keep a copy of the folder `source` as `target`, whole or not at all; one that is there already stays.

    Needs no lock. Raises OSError."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
        (temporary / SUMS).write_text(json.dumps(_sums(temporary)), encoding="utf-8")
        # A folder that holds something is not replaced: who came first is as good.
        with suppress(OSError):
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def taken(source: Path, into: Path) -> bool:
    """Copy what `keep` left at `source` into the folder `into`; false, with nothing in it, if there is nothing, or not
    what was left there: that is removed."""
    try:
        shutil.copytree(source, into, dirs_exist_ok=True)
        sums = json.loads((into / SUMS).read_text(encoding="utf-8"))
        (into / SUMS).unlink()
        os.utime(source.parent)
        whole = bool(sums == _sums(into))
    except (OSError, ValueError):
        whole = False  # not there, or it is being removed
    if not whole:
        shutil.rmtree(source, ignore_errors=True)
        for path in into.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return whole


_USED: dict[Path, int] = {}
"""What this process uses, each with a file descriptor that holds its lock until the process ends."""


def used(path: Path) -> Path:
    """Return the folder at `path`, if it is there, marked as used now; `trim` keeps it for as long as this process
    lives."""
    with suppress(OSError):
        os.utime(path)
        if path not in _USED:
            _USED[path] = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(_USED[path], fcntl.LOCK_SH)
    return path


def trim(folder: Path, *, most: int) -> None:
    """Remove the folders in `folder` that were used longest ago, beyond `most`, and that no process uses."""

    def when(path: Path) -> float:
        with suppress(OSError):
            return path.stat().st_mtime
        return 0.0

    for path in sorted(filter(Path.is_dir, folder.iterdir()), key=when, reverse=True)[most:]:
        with suppress(OSError), _alone(path):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """While no process uses the folder. Raises OSError if one does, or it is gone."""
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


def _sums(folder: Path) -> dict[str, str]:
    """Return SHA-256 of every file, by its path."""
    out = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != SUMS:
            with path.open("rb") as file:
                out[path.relative_to(folder).as_posix()] = file_digest(file, "sha256").hexdigest()
    return out
