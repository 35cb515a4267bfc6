"""Spark's home: the jars and scripts of the installed pyspark, copied once into our own cache.

A class data archive fits one class path. Under the path of a virtual environment each environment would make its own,
a minute and 400 MB. The copy is named by its content, so every environment with the same files shares it, and a
pyspark that somebody put a jar into has another one.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.errors import StackError
from harness.machine import cache
from harness.machine.jars import spark_home as wheel
from harness.run_folder.store import digest
from harness.wait import locked

PARTS = ("bin", "conf", "data", "examples", "jars", "python", "sbin")
"""What of the installed pyspark makes a Spark home; the rest is its Python package."""
SPARKS_OWN = "bin/spark-submit.spark"
"""Spark's own spark-submit in the copy; in its place stands the one beside this file, which may save the launcher."""
SUBMIT = Path(__file__).with_name("spark-submit.sh")
UNSIGNED = ("commons-compiler-*.jar", "janino-*.jar")
"""Spark's Java compiler. A JVM checks the signature of each class of a signed jar, and no class data archive takes one:
half a CPU-second of every driver and executor."""
COMPILES = "org.codehaus.janino.SimpleCompiler"
"""Its main class: the file of a class, whose main is to be called, and that one's arguments."""
SIGNATURES = (".SF", ".RSA", ".DSA", ".EC")
LOCK_S = 600.0
KEPT = 4
"""Of those used last."""


def spark_home(source: Path | None = None) -> Path:
    """The copy for the installed pyspark, or for the one at `source`; made when it is missing (some 450 MB). Raises
    StackError."""
    return known(source) or _made(source or wheel())


def compiler() -> list[Path]:
    """The jars of Spark's Java compiler. Raises StackError."""
    folder = spark_home() / "jars"
    found = [next(iter(sorted(folder.glob(pattern))), None) for pattern in UNSIGNED]
    if None in found:
        raise StackError(f"asked for {' and '.join(UNSIGNED)} of pyspark; not in {folder}; reinstall pyspark")
    return [path for path in found if path is not None]


def known(source: Path | None = None) -> Path | None:
    """The same copy; None if it is not there, or somebody changed it."""
    source = source or wheel()
    found = _known(_memo(source), _installed(source))
    if found is None or not _whole(found):
        return None
    return cache.used(found)


def _installed(source: Path) -> str:
    return " ".join([_state(source), *UNSIGNED, digest(SUBMIT)])


def _memo(source: Path) -> Path:
    return cache.folder("spark") / f"{_short(str(source))}.json"


def _made(source: Path) -> Path:
    with locked(cache.folder("spark") / ".lock", within_s=LOCK_S):
        name = _content(source)
        # One that somebody changed may be in use: its place is never taken.
        named = (cache.folder("spark") / f"{name}{suffix}" for suffix in ("", *(f"-{n}" for n in range(1, 100))))
        home = next(path for path in named if _whole(path) or not path.exists())
        if not home.exists():
            _copy(source, home)
        cache.used(home)
        _memo(source).write_text(json.dumps({"state": _installed(source), "home": home.name}), encoding="utf-8")
        cache.trim(home.parent, most=KEPT)
    return home


def _whole(home: Path) -> bool:
    """Is the copy there, and as it was made?"""
    return (kept := _kept(home)) != "" and kept == _state(home)


def _copy(source: Path, home: Path) -> None:
    try:
        with cache.filling(home) as temporary:
            for part in PARTS:
                if (source / part).is_dir():
                    shutil.copytree(source / part, temporary / part)
            (temporary / "bin" / "spark-submit").rename(temporary / SPARKS_OWN)
            shutil.copy(SUBMIT, temporary / "bin" / "spark-submit")
            (temporary / "bin" / "spark-submit").chmod(0o755)
            for pattern in UNSIGNED:
                for jar in (temporary / "jars").glob(pattern):
                    unsign(jar)
            (temporary / "state").write_text(_state(temporary), encoding="utf-8")
    except (OSError, zipfile.BadZipFile) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise StackError(f"cannot copy {source} into the cache, {home}: {why}. Free disk space, or mend it") from error


def unsign(jar: Path) -> None:
    """Write the jar again without the files of its signature. Every class stays as it is."""
    bare = jar.with_suffix(".bare")
    with zipfile.ZipFile(jar) as signed, zipfile.ZipFile(bare, "w", zipfile.ZIP_DEFLATED) as out:
        for entry in signed.infolist():
            if not (entry.filename.startswith("META-INF/") and entry.filename.upper().endswith(SIGNATURES)):
                out.writestr(entry, signed.read(entry))
    bare.replace(jar)


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
    return _short("\n".join([*lines, *UNSIGNED, digest(SUBMIT)]))


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
