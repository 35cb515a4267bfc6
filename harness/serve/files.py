"""The files of a store that may be seen: pages of runs, their tables, pages of many runs. No other, through no link."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote_to_bytes

TYPES = {
    "report.html": "text/html; charset=utf-8",
    "index.html": "text/html; charset=utf-8",
    "findings.csv": "text/csv; charset=utf-8",
}
OF_A_RUN = ("report.html", "findings.csv")
DEEPEST = 14
STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking, since a pipe in its place would wait for a writer.
LAST = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def opened(root: Path, address: bytes) -> tuple[int, str] | None:
    """Return an open descriptor of the file at a raw path such as `/a/b/report.html`, and its type; None for everything
    that may not be seen or is not there. The caller closes it."""
    parts = [os.fsdecode(unquote_to_bytes(part)) for part in address.split(b"/")[1:]]
    name = parts[-1] if parts else ""
    if name not in TYPES or not 1 < len(parts) <= DEEPEST:
        return None
    if any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        return None
    try:
        folder = os.open(root, STEP & ~os.O_NOFOLLOW)
        try:
            for part in parts[:-1]:
                below = os.open(part, STEP, dir_fd=folder)
                os.close(folder)
                folder = below
            return _last(folder, name)
        finally:
            os.close(folder)
    except OSError:
        return None


def _last(folder: int, name: str) -> tuple[int, str] | None:
    of_a_run = False
    with suppress(FileNotFoundError):
        of_a_run = stat.S_ISREG(os.stat("run.json", dir_fd=folder, follow_symlinks=False).st_mode)
    if of_a_run != (name in OF_A_RUN):
        return None
    file = os.open(name, LAST, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return None
    return file, TYPES[name]
