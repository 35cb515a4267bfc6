"""The files that Spark sees when it lists a folder, and what the names of folders say of the rows.

Names that begin with `_` or `.` are hidden, and so is all below them; `_day=1` is a partition's folder all the same. A
partition column is text, as the folder's name says it: who wants a date casts it in `expected`.

Spark passes over a file in a plain subfolder without a word, and over one beside partitions. Some layouts it refuses,
and some it reads otherwise than a table of the same folder is read. All of these are refused here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from harness.errors import StackError, UsageError
from harness.sinks.base import Missing

NULL = "__HIVE_DEFAULT_PARTITION__"
Found = TypeVar("Found")
COPYING = "._COPYING_"
TRIES = 5
"""How often a folder is listed that changes meanwhile."""


class Reader(StrEnum):
    """Which files a reader takes."""

    LISTING = "listing"
    RECURSIVE = "recursive"
    MANIFEST = "manifest"


@dataclass(frozen=True)
class DataFile:
    """A file, where it lies below the sink's folder, and its partition's columns with their values."""

    path: Path
    place: str
    partition: tuple[tuple[str, str | None], ...]


def hidden(name: str) -> bool:
    """Return whether a reader passes over it."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith(COPYING)


def data_file(folder: Path, path: Path) -> DataFile:
    """Return the file at `path`, which lies below `folder`. Raises UsageError for one that lies elsewhere."""
    try:
        place = path.relative_to(folder)
    except ValueError:
        raise UsageError(f"{folder.name} names the file {path}, which lies elsewhere") from None
    parts = [name.partition("=") for name in place.parts[:-1] if "=" in name]
    values = tuple((unquote(name), None if value == NULL else unquote(value)) for name, _, value in parts)
    return DataFile(path, str(place), values)


def seen(folder: Path, files: list[DataFile]) -> list[DataFile]:
    """Return the same files. Raises UsageError if Spark's reader of the folder does not find each of them: all must be
    in the folder itself, or in partitions of the same columns."""
    request = f"asked to read the files of {folder.name}"
    for file in files:
        columns = [name for name, _ in file.partition]
        if plain := [name for name in Path(file.place).parts[:-1] if not all(name.partition("="))]:
            saw = f"{file.place} is in {plain[0]}, which is no partition (NAME=VALUE)"
            cure = "Write into the folder itself or into partitions; recursiveFileLookup is `reader: recursive`"
            raise UsageError(f"{request}; {saw}: not every reader of Spark's finds it. {cure}")
        if len({name.lower() for name in columns}) < len(columns):
            raise UsageError(f"{request}; {file.place} has a partition's column twice, and Spark refuses the folder")
        if columns != (first := [name for name, _ in files[0].partition]):
            saw = f"{file.place} has {_named(columns)}, and {files[0].place} has {_named(first)}"
            came = "Spark refuses the folder, or passes over one of them"
            raise UsageError(f"{request}; {saw}: {came}. Give each of its files the same ones, in the same order")
    return files


def _named(columns: list[str]) -> str:
    return f"the partition columns {', '.join(columns)}" if columns else "no partition column"


def listed(folder: Path, *, recursive: bool = False) -> list[DataFile]:
    """Return all of them, in the order of their names; `recursive`: as recursiveFileLookup has them, without the
    columns of partitions. Raises Missing if there is no such folder, UsageError for a file that Spark's reader does not
    find."""
    if not folder.is_dir():
        request = f"asked to read the files of {folder.name}; there is no such folder in {folder.parent}"
        raise Missing(f"{request}. Mend its name in `sink`, or the path in the program")
    found = _unchanged(folder, partial(_walked, folder, hide=hidden))
    files = [data_file(folder, path) for path in sorted(found)]
    return [replace(file, partition=()) for file in files] if recursive else seen(folder, files)


def fingerprint(folder: Path) -> str:
    """Of the names, sizes and times of all that is there, hidden or not."""

    def listed() -> str:
        seen = [(path, path.lstat()) for path in sorted(_walked(folder, hide=lambda name: False))]
        lines = [f"{path.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}" for path, stat in seen]
        digest = blake2b("\n".join(lines).encode(errors="surrogateescape"), digest_size=16).hexdigest()
        return f"{len(seen)} files, {sum(stat.st_size for _, stat in seen)} bytes, {digest}"

    return _unchanged(folder, listed)


def _walked(folder: Path, *, hide: Callable[[str], bool]) -> list[Path]:
    def refuse(failure: OSError) -> None:
        raise failure

    out: list[Path] = []
    for above, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not hide(name)]
        if linked := [name for name in folders if Path(above, name).is_symlink()]:
            # Some readers follow it, and others do not.
            request = f"asked to list the files of {folder.name}; {linked[0]} is a link to another folder"
            raise UsageError(f"{request}. Write the files into the folder itself")
        out += [Path(above, name) for name in names if not hide(name)]
    return out


def _unchanged(folder: Path, walk: Callable[[], Found]) -> Found:
    """Return what a walk of a folder found, after one in which nothing was removed meanwhile."""
    failure: OSError | None = None
    for _ in range(TRIES):
        try:
            return walk()
        except FileNotFoundError as gone:
            failure = gone
        except OSError as refused:
            raise StackError(f"asked to list {folder}; {refused.strerror}: {refused.filename}") from refused
    raise UsageError(f"asked to list the files of {folder.name}; it changed each time: {failure}")
