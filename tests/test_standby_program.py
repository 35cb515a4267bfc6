"""The file that a standby runs until its program begins: when that goes on in it, and when the program gets a process
or a JVM of its own. Without Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.components.spark import standby_program as program

ARGUMENTS = ["--one", "two words"]


@pytest.mark.parametrize(
    ("beside", "expected"),
    [("json.py", True), ("json", True), ("helpers_of_mine.py", False), ("json.yaml", False)],
)
def test_a_module_in_the_folder_of_the_program_shadows_one_that_was_imported(
    tmp_path: Path, beside: str, expected: bool
) -> None:
    """A folder is a package."""
    entry = tmp_path / "main_of_mine.py"
    entry.touch()
    (tmp_path / beside).touch() if "." in beside else (tmp_path / beside).mkdir()
    assert program.shadows(str(entry)) is expected


def test_the_folder_is_that_of_the_file_and_not_of_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "real" / "main_of_mine.py").touch()
    (tmp_path / "real" / "json.py").touch()
    (tmp_path / "linked" / "main_of_mine.py").symlink_to(tmp_path / "real" / "main_of_mine.py")
    assert program.shadows(str(tmp_path / "linked" / "main_of_mine.py"))


class Replaced(Exception):
    """The process is another one."""


@pytest.mark.parametrize("shadowed", [True, False])
def test_a_program_that_shadows_a_module_begins_in_a_new_process_once_the_jvm_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shadowed: bool
) -> None:
    said: list[Any] = []

    class Ready:
        def __init__(self, folder: Path, settings: program.Pairs) -> None:
            said.append(settings)

        def __getattr__(self, name: str) -> Callable[[], None]:
            return lambda: said.append(name)

    def execv(path: str, argv: list[str]) -> None:
        said.append([path, *argv])
        raise Replaced

    folder, source = tmp_path / "standby", tmp_path / "source"
    folder.mkdir()
    source.mkdir()
    entry = source / "main_of_mine.py"
    entry.touch()
    if shadowed:
        (source / "json.py").touch()
    (folder / program.SETTINGS).write_text('[["spark.app.name", "it"]]')
    # Written to already.
    (folder / program.GO).touch()
    monkeypatch.setattr(sys, "argv", ["standby_program.py", str(folder), str(entry), *ARGUMENTS])
    monkeypatch.setattr(program, "Standby", Ready)
    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(program, "become", lambda entry, arguments: said.append((entry, arguments)))
    if shadowed:
        with pytest.raises(Replaced):
            program.main()
    else:
        program.main()
    new = [sys.executable, sys.executable, "-u", str(entry), *ARGUMENTS]
    assert said[:3] == [[("spark.app.name", "it")], "prepare", "offer"]
    assert said[3:] == (["end", new] if shadowed else [(str(entry), ARGUMENTS)])
    assert (folder / program.READY).exists()


class Context:
    """In the place of PySpark's."""

    @staticmethod
    def _initialize_context(jconf: object) -> None:
        """Never called."""


class Gateway:
    """A JVM."""

    def __init__(self) -> None:
        self.ended = False
        self.proc = SimpleNamespace(kill=self._end, wait=lambda: None, poll=lambda: -9 if self.ended else None)

    def _end(self) -> None:
        self.ended = True

    def shutdown(self) -> None:
        """Nobody is there."""


@pytest.fixture
def umask() -> Iterator[None]:
    """The one of before, afterwards."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def no_change(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As it was."""


def other_umask(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    os.umask(0o077)


def other_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)


def other_variable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("OF_THE_PROGRAM", "1")


@pytest.mark.parametrize("change", [no_change, other_umask, other_folder, other_variable])
@pytest.mark.usefixtures("umask")
def test_a_program_that_has_changed_what_a_jvm_takes_over_gets_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch, Path], None]
) -> None:
    fresh, kept = Gateway(), Gateway()
    launched = SimpleNamespace(launch_gateway=lambda conf, popen_kwargs: fresh)
    monkeypatch.setattr(program, "pyspark", lambda: (launched, Context))
    settings = [("spark.app.name", "it")]
    standby = program.Standby(tmp_path, settings)
    standby._gateway = kept
    change(monkeypatch, tmp_path)

    def asks(instance: Context) -> object:
        """As `SparkContext._ensure_initialized` does."""
        return standby._gateway_for(SimpleNamespace(getAll=lambda: settings))

    same = change is no_change
    assert asks(Context()) is (kept if same else fresh)
    assert kept.ended is not same
    assert (tmp_path / program.USED).exists() is not same
    assert same or (tmp_path / program.USED).read_text() == program.FRESH


def test_a_program_gets_no_jvm_that_has_died_while_it_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its death is none of the program's."""
    fresh, kept = Gateway(), Gateway()
    launched = SimpleNamespace(launch_gateway=lambda conf, popen_kwargs: fresh)
    monkeypatch.setattr(program, "pyspark", lambda: (launched, Context))
    standby = program.Standby(tmp_path, [])
    standby._gateway = kept
    kept.ended = True

    def asks(instance: Context) -> object:
        """As `SparkContext._ensure_initialized` does."""
        return standby._gateway_for(SimpleNamespace(getAll=list))

    assert asks(Context()) is fresh
    assert (tmp_path / program.USED).read_text() == program.FRESH
