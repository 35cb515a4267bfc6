"""Lines of JSON that outlive the process that writes them: a file that is appended to and never changed.

A last line without its end was being written when its writer was killed: it is cut off before the next one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, Any

from harness.run_folder.store import disk

BLOCK = 2**16


def append(path: Path, part: dict[str, Any]) -> None:
    """One more line, on the disk before this returns. Raises HarnessError."""
    with disk("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as out:
            _cut(out)
            out.write(json.dumps(part).encode("ascii") + b"\n")
            out.flush()
            os.fsync(out.fileno())


def whole(path: Path) -> bytes:
    """Return the lines that were written to their end; what comes after is cut off. Empty where there is no file.
    Raises HarnessError."""
    if not path.is_file():
        return b""
    with disk("read", path), path.open("r+b") as file:
        _cut(file)
        file.seek(0)
        return file.read()


def _cut(file: IO[bytes]) -> None:
    """Cut off what comes after the last line end, which is searched for from the end."""
    size = at = file.seek(0, os.SEEK_END)
    while at:
        begin = max(0, at - BLOCK)
        file.seek(begin)
        found = file.read(at - begin).rfind(b"\n")
        at = begin
        if found >= 0:
            at = begin + found + 1
            break
    if at < size:
        file.truncate(at)
