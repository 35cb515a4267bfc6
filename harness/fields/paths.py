"""Where a scenario's files are: the project's root, the scenarios under a folder, the paths that a scenario names."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from harness.errors import UsageError

MARKERS = ("pyproject.toml", ".git", "pytest.ini")
SUFFIXES = (".yaml", ".yml")
SPARK_HOME = "{spark.home}"
PACKAGE = "package:"


def project_root(path: Path) -> Path:
    """Return the folder that a scenario's paths count from: the nearest one above it that holds `pyproject.toml`,
    `.git` or `pytest.ini`, or that holds a folder `scenarios` with the file in it; else the file's own folder."""
    home = path.resolve().parent
    for folder in (home, *home.parents):
        if any((folder / marker).exists() for marker in MARKERS):
            return folder
        if folder.name == "scenarios":
            return folder.parent
    return home


def code_folders(scenario: Path, entry: str, root: Path) -> tuple[Path, ...]:
    """Return where the user's own code is searched for: beside the scenario, beside its program, in the project's
    root."""
    program = [] if not entry or "{" in entry else [(root / entry).parent]
    found = [scenario.parent, *program, root]
    return tuple(dict.fromkeys(folder.absolute() for folder in found))


def scenario_files(folder: Path) -> list[Path]:
    """Return every `*.yaml` and `*.yml` in a folder at any depth, in order of name; links to nowhere among them. Raises
    UsageError for a folder that cannot be read: scenarios in it would be passed over in silence."""

    def refused(failure: OSError) -> None:
        # One that was removed meanwhile holds no scenarios; of a process that ended, /proc says ESRCH.
        if not isinstance(failure, FileNotFoundError | NotADirectoryError | ProcessLookupError):
            saw = f"{failure.filename} cannot be read: {failure.strerror}"
            raise UsageError(f"asked for the scenarios in {folder}; {saw}. Mend that, or name another folder")

    walk = os.walk(folder, onerror=refused)
    return sorted(Path(at, name) for at, _, names in walk for name in names if name.endswith(SUFFIXES))


def find(paths: Sequence[Path]) -> list[Path]:
    """Return the scenario files among `paths`: a file is itself, a folder is what `scenario_files` gives; none twice.
    Raises UsageError for a path that is not there or cannot be read, and for a folder without scenarios."""
    found: dict[Path, None] = {}
    for path in paths:
        try:
            found.update(dict.fromkeys(_inside(path) if path.is_dir() else [_alone(path)]))
        except OSError as failure:
            saw = f"{failure.filename or path} cannot be read: {failure.strerror}"
            raise UsageError(f"asked for the scenario {path}; {saw}. Mend that, or name another") from failure
    return list(found)


def _inside(folder: Path) -> list[Path]:
    there = scenario_files(folder)
    if nowhere := next((each for each in there if each.is_symlink() and not each.exists()), None):
        raise UsageError(f"asked for the scenarios in {folder}; {nowhere} is a link to nowhere. Mend it")
    if not (inside := [each for each in there if each.is_file()]):
        raise UsageError(f"asked for the scenarios in {folder}; saw no *.yaml or *.yml file there. Name another folder")
    return inside


def _alone(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"asked for the scenario {path}; saw no such file or folder. See `onceproof list`")
    return path


def missing(name: str, root: Path) -> str:
    """Return why the program or data file `name` cannot be used; empty if it can, or if only a running stack can
    say."""
    if name.startswith(SPARK_HOME + "/"):
        return ""
    if name.startswith(PACKAGE):
        package, _, inside = name.removeprefix(PACKAGE).partition("/")
        home = package_folder(package)
        if home is None:
            return f"names the package {package!r}, and none is installed"
        path = home / inside
    else:
        path = root / name
    try:
        if path.is_file():
            away = not (Path(name).is_absolute() or path.resolve().is_relative_to(root))
            return f"{name!r} leads out of {root}: name its absolute path" if away and path.is_relative_to(root) else ""
        return f"names {name!r}, and {'that is a folder' if path.is_dir() else f'there is no such file in {root}'}"
    except OSError as failure:
        return f"names {name[:60]!r}, which cannot be read: {failure.strerror}"


def package_folder(package: str) -> Path | None:
    """Return where an installed package lies. It is found, not imported: reading a scenario runs no code of the
    user."""
    try:
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
    except ValueError:
        return None  # a module that is running and has no spec, such as __main__
    return Path(spec.origin).parent if spec is not None and spec.origin else None
