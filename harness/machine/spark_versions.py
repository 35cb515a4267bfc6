"""The Spark versions that a driver can run on: the installed one, and others, each with its own Python environment.

The environment of another version is in the harness's cache. It is made when a scenario first needs it, from two lock
files beside this module: one for its pyspark (`spark-3.5.lock`), one for what programs import (`programs.lock`). The
folder is renamed into its place after it is complete and has been tried, so no process finds half of one. After that
no network is needed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import StackError, UsageError
from harness.machine import cache
from harness.machine.java import VARIABLE, Java
from harness.session.session import Session
from harness.wait import locked

PINNED = {"3.5": "3.5.7", "4.0": "4.0.0", "4.1": "4.1.1", "4.2": "4.2.0"}
"""By Spark version, the release in its environment: the newest whose Kafka connector is complete on Maven Central."""
JAVA = {"3.5": (17,)}
"""By Spark version, those Javas of `java.FEATURES` that it runs on, if these are not all."""
MAKE_S = 1800.0
LOCK_S = 2000.0
ASTRAY = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_ROOT")
"""Variables with which pip would find other packages, or put them elsewhere."""
TRY = """
import pyspark.sql.functions
from pyspark import cloudpickle
assert cloudpickle.loads(cloudpickle.dumps(lambda one: one + 1))(1) == 2
print(pyspark.__version__)
"""


@dataclass(frozen=True)
class SparkVersion:
    """One Spark version: its name (`3.5`), its release, the Python of its drivers, and the package pyspark there."""

    name: str
    release: str
    python: Path
    wheel: Path


def installed() -> str:
    """Return the release of the installed pyspark. Raises StackError if there is none."""
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise StackError("needs pyspark beside onceproof; found none; install it: pip install onceproof") from None


def own() -> str:
    """Return the name of the installed Spark version (`4.1`)."""
    return ".".join(installed().split(".")[:2])


def versions() -> dict[str, str]:
    """Return the release of each Spark version that there is, by name."""
    return {**PINNED, own(): installed()}


def chosen(text: str) -> str:
    """Return the name of the Spark version that `text` names, as `3.5` or as a release (`3.5.7`). Raises UsageError if
    there is none."""
    known = versions()
    found = [name for name, version in known.items() if text in (name, version)]
    if not found:
        there = ", ".join(f"{name} ({version})" for name, version in sorted(known.items()))
        raise UsageError(f"asked for Spark {text}; there are {there}. Take one of them")
    return found[0]


def is_other(name: str) -> bool:
    """Return whether it is another Spark version than the installed one. An empty name means the installed one."""
    return name != "" and name != own()


def fits(name: str, java: Java) -> None:
    """Raise StackError if that Spark does not run on this Java."""
    able = JAVA.get(name, (java.feature,))
    if java.feature not in able:
        wanted = " or ".join(map(str, able))
        saw = f"found java {java.feature} at {java.home}"
        raise StackError(f"Spark {name} needs Java {wanted}; {saw}. Install it, or set {VARIABLE} to one")


def there(name: str) -> SparkVersion | None:
    """Return another Spark version, or None if its environment has not been made."""
    return _at(name, _folder(name))


def made(name: str, notify: Callable[[str], object] = lambda words: None) -> SparkVersion:
    """Return another Spark version. A missing environment is made first, and `notify` gets a message about it. Of two
    processes at once the second waits for the first. Raises StackError."""
    if (found := there(name)) is not None:
        return found
    folder = _folder(name)
    cache.folder(folder.parent.name)
    with locked(folder.parent / ".lock", within_s=LOCK_S):
        if (found := there(name)) is None:
            # Left over from a process that was killed while it made one.
            for left in folder.parent.glob(f".{folder.name}.*"):
                shutil.rmtree(left, ignore_errors=True)
            notify(f"making the Python environment of Spark {PINNED[name]} (some 700 MB, a minute or two, once)")
            with cache.filling(folder) as temporary:
                _make(name, temporary)
            found = there(name)
    if found is None:
        raise StackError(f"made {folder}, and there is no pyspark in it; remove that folder and run again")
    return found


def locks(name: str) -> list[Path]:
    """Return the lock files of its environment."""
    return [Path(__file__).with_name(each) for each in (f"spark-{name}.lock", "programs.lock")]


def _folder(name: str) -> Path:
    """Return the folder of the environment. Another lock, Python or place of Python is another environment."""
    text = "\n".join([*(each.read_text(encoding="utf-8") for each in locks(name)), sys.version, sys.base_prefix])
    return cache.root() / f"spark-{PINNED[name]}" / hashlib.sha256(text.encode()).hexdigest()[:16]


def _at(name: str, folder: Path) -> SparkVersion | None:
    python = folder / "bin" / "python"
    wheel = next(iter(sorted(folder.glob("lib/python*/site-packages/pyspark"))), None)
    # The interpreter is a link, and what it points to may be gone.
    return SparkVersion(name, PINNED[name], python, wheel) if wheel is not None and python.exists() else None


def _make(name: str, folder: Path) -> None:
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    _run(name, [sys.executable, "-m", "venv", str(folder)])
    _run(name, [*pip, "--require-hashes", "--no-deps", *(word for each in locks(name) for word in ("-r", str(each)))])
    # Its warnings come first.
    if (printed := _run(name, [python, "-c", TRY]).splitlines()[-1:]) != [PINNED[name]]:
        raise StackError(
            f"asked for an environment with pyspark {PINNED[name]}; its pyspark says it is {' '.join(printed)}"
        )


def _run(name: str, command: list[str]) -> str:
    """Return the output of the command. It ends with this process. Raises StackError if it fails."""
    environment = {key: value for key, value in os.environ.items() if key not in ASTRAY}
    with Session() as session:
        log = session.folder / "output.log"
        child = session.spawn(command, name=f"spark-{name}", log=log, env=environment, cwd=session.folder)
        try:
            status = child.wait(MAKE_S)
        except subprocess.TimeoutExpired as error:
            raise StackError(_failed(name, f"it took over {MAKE_S:g} s")) from error
        output = log.read_text(encoding="utf-8", errors="replace").strip()
    if status != 0:
        raise StackError(_failed(name, " / ".join((output or "it said nothing").splitlines()[-3:])))
    return output


def _failed(name: str, saw: str) -> str:
    request = f"asked for the Python environment of Spark {name} (pyspark {PINNED[name]})"
    return f"{request}; saw: {saw}. It is needed once: run again with a network"
