"""Spark's home: the jars and scripts of the installed pyspark, copied once into our own cache.

A class data archive fits one class path. Under the path of a virtual environment each environment would make its own,
a minute and 400 MB. The copy is named by its content, so every environment with the same files shares it, and a
pyspark that somebody put a jar into has another one.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.errors import StackError
from harness.machine import cache
from harness.machine.jars import spark_home as wheel
from harness.run_folder.store import digest

PARTS = ("bin", "jars", "python", "sbin")
"""What of the installed pyspark makes a Spark home; the rest is its Python package."""
SPARKS_OWN = "bin/spark-submit.spark"
"""Spark's own spark-submit in the copy; in its place stands the one beside this file, which may save the launcher."""
SUBMIT = Path(__file__).with_name("spark-submit.sh")
LOCK_S = 600.0


def spark_home() -> Path:
    """The copy for the installed pyspark; made when it is missing (some 450 MB). Raises StackError."""
    source = wheel()
    state = f"{_state(source)} {digest(SUBMIT)}"
    memo = cache.folder("spark") / f"{_short(str(source))}.json"
    if (known := _known(memo, state)) is not None and _state(known) == _kept(known):
        return known
    with cache.locked(cache.folder("spark") / ".lock", within_s=LOCK_S):
        home = cache.folder("spark") / _content(source)
        if _kept(home) != _state(home) or not _kept(home):
            _copy(source, home)
        memo.write_text(json.dumps({"state": state, "home": home.name}), encoding="utf-8")
    return home


def _copy(source: Path, home: Path) -> None:
    try:
        with cache.filling(home) as temporary:
            for part in PARTS:
                if (source / part).is_dir():
                    shutil.copytree(source / part, temporary / part)
            (temporary / "bin" / "spark-submit").rename(temporary / SPARKS_OWN)
            shutil.copy(SUBMIT, temporary / "bin" / "spark-submit")
            (temporary / "bin" / "spark-submit").chmod(0o755)
            (temporary / "state").write_text(_state(temporary), encoding="utf-8")
    except OSError as error:
        raise StackError(f"cannot copy {source} into the cache, {home}: {error.strerror}; make room for it") from error


def _files(home: Path) -> Iterator[Path]:
    for part in PARTS:
        yield from sorted(path for path in (home / part).rglob("*") if path.is_file() and path.suffix != ".pyc")


def _state(home: Path) -> str:
    """Every file with its size and time, as one digest: whatever changes a file changes it."""
    seen = ((path, path.stat()) for path in _files(home))
    return _short("\n".join(f"{path.relative_to(home)} {at.st_size} {at.st_mtime_ns}" for path, at in seen))


def _content(home: Path) -> str:
    """The name of the copy: a digest of every byte."""
    files = list(_files(home))
    with ThreadPoolExecutor(2) as pool:
        lines = [f"{path.relative_to(home)} {sum_}" for path, sum_ in zip(files, pool.map(digest, files), strict=True)]
    return _short("\n".join([*lines, digest(SUBMIT)]))


def _kept(home: Path) -> str:
    """The state of the copy when it was made; empty if there is none."""
    try:
        return (home / "state").read_text(encoding="utf-8")
    except OSError:
        return ""


def _known(memo: Path, state: str) -> Path | None:
    """The copy that was made of this very state of the installed pyspark."""
    try:
        found = json.loads(memo.read_text(encoding="utf-8"))
        return memo.parent / str(found["home"]) if found["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
