"""What a fetch of files says on standard error: what it fetches and its size, and how far it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic

EVERY_S = 5.0
MEGABYTE = 1024**2


@contextmanager
def shown(what: str, folders: Sequence[Path], megabytes: int = 0) -> Iterator[None]:
    """Print that `what` is fetched into these folders, of about so many MB (0: unknown), every EVERY_S seconds how much
    of it is there, and at the end the whole."""
    began, before = monotonic(), _bytes(folders)
    over = Event()

    def so_far() -> str:
        return f"{(_bytes(folders) - before) / MEGABYTE:.0f} MB in {monotonic() - began:.0f} s"

    def follow() -> None:
        while not over.wait(EVERY_S):
            _print(f"fetching {what}: {so_far()}")

    about = f", about {megabytes} MB" if megabytes else ""
    _print(f"fetching {what} (once{about})")
    following = Thread(target=follow, daemon=True)
    following.start()
    try:
        yield
    finally:
        over.set()
        following.join()
    _print(f"fetched {what}: {so_far()}")


def _bytes(folders: Sequence[Path]) -> int:
    """Return the size of all files below the folders; those that go meanwhile do not count."""
    out = 0
    for path in (path for folder in folders for path in folder.rglob("*")):
        try:
            out += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return out


def _print(words: str) -> None:
    print(f"onceproof: {words}", file=sys.stderr, flush=True)
