"""The files that a program under test depends on, as far as its scenario names them, each by its SHA-256.

That is the program's own folder, from which Python imports first; what the scenario adds to the path of imports by
PYTHONPATH, `--py-files` or Spark's own settings; and each file that an argument, a variable or a setting names. Of what
its drivers inherit from the shell, the Python files of a PYTHONPATH count, Spark's configuration, and every variable
that a program may read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from harness.machine.jars import spark_home
from harness.run_folder.store import digest
from harness.scenario import Pipeline
from harness.spark.beside import CONF, conf_folder

PATH = "PYTHONPATH"
SHIPPED = ("spark.submit.pyFiles", "spark.files", "spark.archives", "spark.jars")
"""Settings of Spark that list files for driver and executors."""
PY_FILES = "--py-files"
INSTALLED = ("site-packages", "dist-packages")
MOST = 5_000
"""So many files of an inherited PYTHONPATH are read: one that leads to a whole disk must not hold up a run."""
NAMED = "named: "
"""So that a file that the scenario names never stands for one of that name in the program's folder."""
SESSION = re.compile(
    r"_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|WINDOWID|DISPLAY|STY|INVOCATION_ID|JOURNAL_STREAM"
    r"|(TERM|SSH|TMUX|VSCODE|GNOME_TERMINAL|WAYLAND|XDG_SESSION|DBUS|PYTEST|ONCEPROOF|HARNESS)(_.*)?"
)
"""Variables of one shell, terminal or test, and our own: they differ from one command to the next."""
LEFT_OUT = ("__pycache__", ".coverage", ".DS_Store")
"""What others write beside a program, and no program reads."""


def files(pipeline: Pipeline, root: Path, *, excluded: Path | None = None) -> dict[str, str]:
    """Return the SHA-256 of each file by its name: those of the program's folder by their name there, others with
    `NAMED` before. Hidden folders (not hidden files such as `.env`), caches, virtual environments and `excluded` are
    left out. Of a program that Spark ships only its name and Spark's version count."""
    walk = _Walk(excluded)
    program = root / pipeline.entry
    if "{" not in pipeline.entry and program.is_file():
        walk.below(program.parent, "")
    for word in sorted(_imported(pipeline)):
        walk.any(root / word, NAMED + word)
    for word in sorted(_words(pipeline)):
        if (root / word).is_file():
            walk.any(root / word, NAMED + word)
    return walk.found


def depends_on(pipeline: Pipeline, root: Path) -> list[Path]:
    """Return what `files` takes the sums of, and the folders that an argument, a variable or a setting names."""
    program = root / pipeline.entry
    own = [program.parent] if "{" not in pipeline.entry else []
    return [*own, *(root / word for word in sorted(_imported(pipeline) | _words(pipeline)) if (root / word).exists())]


def inherited(pipeline: Pipeline, environ: Mapping[str, str], *, excluded: Path | None = None) -> dict[str, str]:
    """Return by place in the PYTHONPATH of `environ` and name, the SHA-256 of each Python file and archive there; none
    where the scenario sets its own. Left out is also what is installed. And that of each file in Spark's configuration,
    such as `spark-defaults.conf`."""
    walk = _Walk(excluded, most=MOST)
    words = [] if PATH in pipeline.env else environ.get(PATH, "").split(os.pathsep)
    for place, word in enumerate(words):
        if word:
            walk.any(Path(word), str(place))
    conf = conf_folder({**environ, **pipeline.env}, spark_home())
    for path in sorted(conf.iterdir())[:MOST] if conf.is_dir() else ():
        if path.is_file():
            walk.any(path, f"{CONF}/{path.name}")
    return walk.found


def variables(pipeline: Pipeline, environ: Mapping[str, str]) -> dict[str, str]:
    """Return by name, the SHA-256 of each variable of `environ` that a driver inherits. Left out are those that the
    scenario sets, a PYTHONPATH, whose files count, and those of a session."""
    return {
        name: sha256(os.fsencode(value)).hexdigest()
        for name, value in sorted(environ.items())
        if name not in (PATH, *pipeline.env) and not SESSION.fullmatch(name)
    }


class _Walk:
    """Takes the sums of files; each folder once, however many links lead there, and back. With `most`, in folders those
    of Python's alone that are not installed, and no more than so many."""

    def __init__(self, excluded: Path | None, *, most: int | None = None) -> None:
        self.found: dict[str, str] = {}
        self._excluded = excluded and excluded.resolve()
        self._seen: dict[Path, str] = {}
        self._most = most
        self._left = most or 0

    def any(self, path: Path, name: str) -> None:
        """A file, or all below a folder."""
        # A file that may not be read is none that the program reads.
        with suppress(OSError):
            if path.is_file():
                self.found[name] = digest(path)
            elif path.is_dir() and not (path / "pyvenv.cfg").is_file() and path.resolve() != self._excluded:
                self.below(path, f"{name}/")

    def below(self, folder: Path, name: str) -> None:
        """All below a folder, whose name ends with a slash."""
        real = folder.resolve()
        if real in self._seen:
            self.found[name] = f"the same as {self._seen[real] or './'}"
            return
        self._seen[real] = name
        for path in sorted(folder.iterdir()):
            hidden = path.name.startswith(".") and path.is_dir()
            if not hidden and path.name not in LEFT_OUT and self._wanted(path):
                self.any(path, name + path.name)

    def _wanted(self, path: Path) -> bool:
        if self._most is None:
            return True
        self._left -= 1
        return self._left >= 0 and path.name not in INSTALLED and (path.suffix == ".py" or path.is_dir())


def _imported(pipeline: Pipeline) -> set[str]:
    """Return what the scenario adds to the path of imports, and what it ships: files, folders and archives."""
    paths = [pipeline.env.get(PATH, ""), pipeline.conf.get(f"spark.executorEnv.{PATH}", "")]
    lists = [pipeline.conf.get(name, "") for name in SHIPPED]
    lists += [after for word, after in pairwise((*pipeline.args, "")) if word == PY_FILES]
    lists += [word.removeprefix(f"{PY_FILES}=") for word in pipeline.args if word.startswith(f"{PY_FILES}=")]
    return {
        *_plain(word for each in paths for word in each.split(os.pathsep)),
        *_plain(word for each in lists for word in each.split(",")),
    }


def _words(pipeline: Pipeline) -> set[str]:
    """Whatever else may name a file."""
    words = [*pipeline.args, *(arg.partition("=")[2] for arg in pipeline.args)]
    return set(_plain(iter([*words, *pipeline.env.values(), *pipeline.conf.values()])))


def _plain(words: Iterator[str]) -> Iterator[str]:
    """Paths as they are, without those that each run fills in for itself."""
    for word in words:
        # `file:/a/b.zip#name` is how Spark has it.
        path = word.strip().removeprefix("file://").removeprefix("file:").partition("#")[0]
        if path and "{" not in path and "\0" not in path and len(path) < 4096:
            yield path
