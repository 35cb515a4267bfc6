"""The files that Spark's file sink has committed: `_spark_metadata/N` has those of one batch, `N.compact` those of all
up to it.

The first line is the version, `v1`; each other one is a file as JSON. What a later batch deletes is no file any more.
A named file that is not there, or has another size, is an error: no reader gets those rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.components.files import spark_log
from harness.components.files.sink.listing import DataFile, data_file, seen
from harness.errors import UsageError
from harness.sinks.base import Missing

LOG = "_spark_metadata"
VERSION = "v1"
TRIES = 5
"""How often the log is read that changes meanwhile."""


def committed(folder: Path, *, named: Path | None = None) -> tuple[int, list[DataFile]]:
    """Return the newest batch, and the files that all of them have together; `named` is what the manifest calls the
    folder, where that is a copy. Raises Missing before the first, UsageError."""
    number, found = entries(folder / LOG)
    sizes = {_here(folder, path, named): size for path, size in found.items()}
    for path, size in sizes.items():
        _sound(folder, path, size)
    return number, seen(folder, [data_file(folder, path) for path in sorted(sizes)])


def _here(folder: Path, path: Path, named: Path | None) -> Path:
    return folder / path.relative_to(named) if named is not None and path.is_relative_to(named) else path


def entries(log: Path) -> tuple[int, dict[Path, int]]:
    """Return the newest batch, and the size of each file by its path. Raises Missing if there is none, UsageError for a
    log that cannot be read."""
    failure: OSError | None = None
    for _ in range(TRIES):
        try:
            return _entries(log)
        except FileNotFoundError as gone:
            # Spark removes what it has compacted.
            failure = gone
    request = f"asked to read the manifest of {log.parent.name}"
    if not log.is_dir():
        raise Missing(f"{request}; there is none: no batch of Spark's file sink is committed there") from failure
    raise UsageError(f"{request}; it changed each time: {failure}")


def _entries(log: Path) -> tuple[int, dict[Path, int]]:
    found = {
        (int(match[1]), bool(match[2])) for file in log.iterdir() if (match := spark_log.NAME.fullmatch(file.name))
    }
    if not found:
        raise Missing(f"asked to read the manifest of {log.parent.name}; no batch is committed yet")
    last = max(number for number, _ in found)
    first = max((number for number, compact in found if compact), default=0)
    out: dict[Path, int] = {}
    for number in range(first, last + 1):
        compact = (number, True) in found
        if not compact and (number, False) not in found:
            saw = f"batch {number} is not in it, and batch {last} is"
            raise UsageError(f"asked to read the manifest of {log.parent.name}; {saw}: readers that go by it fail")
        for action, path, size in _lines(log / f"{number}{'.compact' if compact else ''}"):
            if action == "delete":
                out.pop(path, None)
            else:
                out[path] = size
    return last, out


def _lines(file: Path) -> Iterator[tuple[str, Path, int]]:
    name = f"{file.parent.parent.name}/{LOG}/{file.name}"
    try:
        version, *lines = file.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise UsageError(f"the manifest {name} is damaged: it is no UTF-8") from None
    if version != VERSION:
        raise UsageError(f"the manifest {name} begins with {version[:40]!r}, and only {VERSION} is known")
    for place, line in enumerate(lines, 2):
        if line:
            try:
                yield _entry(json.loads(line))
            except (ValueError, KeyError, TypeError, RecursionError) as failure:
                raise UsageError(f"line {place} of the manifest {name} is damaged: {failure}") from failure


def _entry(line: Any) -> tuple[str, Path, int]:
    action, path, size = line["action"], line["path"], line["size"]
    if action not in ("add", "delete"):
        raise ValueError(f"action {action!r} is not known")
    if not isinstance(path, str) or not isinstance(size, int):
        raise ValueError("path or size is of another type")
    return action, spark_log.path_of(path), size


def _sound(folder: Path, path: Path, size: int) -> None:
    try:
        there = path.stat().st_size
    except OSError as refused:
        words = f"names {path.name}, and that cannot be read: {refused.strerror}"
        raise UsageError(f"the manifest of {folder.name} {words}") from refused
    if there != size:
        raise UsageError(f"the manifest of {folder.name} says that {path.name} has {size} bytes; it has {there}")
