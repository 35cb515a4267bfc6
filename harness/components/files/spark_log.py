"""The log that Spark's file source keeps in a checkpoint: which file is in which batch of the source."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

NAME = re.compile(r"([0-9]+)(\.compact)?")
"""What Spark calls a file of such a log, or of its file sink's: its batch, and whether it has all up to it."""
TRIES = 3
"""How often it is listed: Spark may compact it meanwhile."""


class Entry(NamedTuple):
    """A file, and the number of the source's own batch that took it."""

    file: Path
    batch: int


def path_of(uri: str) -> Path:
    """Return the file that an entry names."""
    return Path(unquote(urlsplit(uri).path))


def reached(line: str) -> int | None:
    """Return the source's own batch that a line of the offset log names, `{"logOffset": 4}`; None for one of another
    kind of source."""
    try:
        parsed: Any = json.loads(line)
    except ValueError:
        return None
    found = parsed.get("logOffset") if isinstance(parsed, dict) and len(parsed) == 1 else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def entries(log: Path) -> list[Entry]:
    """Return all that is noted in `sources/K`: `N` has the files of one batch, `N.compact` those of all up to it. Empty
    while there is none."""
    for _ in range(TRIES):
        try:
            files = [file for file in log.iterdir() if NAME.fullmatch(file.name)]
            lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()[1:]]
        except OSError:
            # Compacted away since it was listed, or not there yet.
            continue
        return [each for each in map(_entry, lines) if each is not None]
    return []


def _entry(line: str) -> Entry | None:
    try:
        parsed: Any = json.loads(line)
    except ValueError:
        return None
    if (
        not isinstance(parsed, dict)
        or not isinstance(parsed.get("path"), str)
        or not isinstance(parsed.get("batchId"), int)
    ):
        return None
    return Entry(path_of(parsed["path"]), parsed["batchId"])
