"""docs/tutorial.md, done as a reader does it: its files are written, its changes applied, its commands given, and what
the page shows of their output is held against what they say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.load import load
from tests.limits import PROCESS_S

HOUSE = Path(__file__).parents[1]
PAGE = HOUSE / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# file: (\S+)\n")
RUN_S = 900.0
CODES = [0, 1, 0]
"""What the page says of the exit codes of its commands, in order."""


@dataclass(frozen=True)
class Block:
    """One block of the page: its language and its text."""

    kind: str
    text: str


def blocks() -> list[Block]:
    return [Block(kind, text) for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8"))]


def write(block: Block, folder: Path) -> Path:
    """The file of a block, which names it in its first line."""
    named = NAMED.match(block.text)
    assert named, block.text[:80]
    path = folder / named[1]
    path.parent.mkdir(exist_ok=True)
    path.write_text(block.text[named.end() :], encoding="utf-8")
    return path


def change(block: Block, folder: Path) -> None:
    """Apply a block of changes."""
    done = subprocess.run(
        ["git", "apply", "-"],
        cwd=folder, input=block.text, text=True, capture_output=True, timeout=PROCESS_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def onceproof(line: str, folder: Path, programs: Path) -> tuple[int, str]:
    """A command of the page: exit code and what it said."""
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def shown(lines: list[str]) -> re.Pattern[str]:
    """What the page shows as a pattern: a line `...` stands for any lines, `...` in a line for anything in it."""
    parts = [
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n" for line in lines
    ]
    return re.compile("^" + "".join(parts), re.MULTILINE)


def steps() -> list[tuple[str, list[str]]]:
    """Each command of the page and the lines that it shows of its output."""
    out: list[tuple[str, list[str]]] = []
    for block in blocks():
        if block.kind == "console":
            for line in block.text.splitlines():
                if line.startswith("$ "):
                    out.append((line[2:], []))
                else:
                    out[-1][1].append(line)
    return out


def test_every_block_is_one_that_this_test_does() -> None:
    kinds = [block.kind for block in blocks()]
    assert kinds == ["python", "yaml", "console", "console", "diff", "console"]
    assert [command for command, _ in steps()] == [
        "onceproof validate scenarios",
        "onceproof run scenarios/payments.yaml",
        "onceproof run scenarios/payments.yaml",
    ]


@pytest.mark.subprocess
def test_the_files_are_valid_before_and_after_the_change(tmp_path: Path) -> None:
    program, scenario, *_ = [write(block, tmp_path) for block in blocks() if NAMED.match(block.text)]
    compile(program.read_text(), str(program), "exec")
    load(scenario, queries=True)
    before = program.read_text(), scenario.read_text()
    for block in blocks():
        if block.kind == "diff":
            change(block, tmp_path)
    compile(program.read_text(), str(program), "exec")
    load(scenario, queries=True)
    assert "on conflict (id) do nothing" in program.read_text() and "primary key" in scenario.read_text()
    assert all(now != was for now, was in zip((program.read_text(), scenario.read_text()), before, strict=True))


@pytest.mark.subprocess
@pytest.mark.parametrize("command", [["git", "apply", "-"], ["patch", "-p1"]])
@pytest.mark.parametrize("named", [True, False])
def test_the_change_applies_whether_or_not_the_first_line_of_a_block_was_copied(
    tmp_path: Path, command: list[str], named: bool
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")
    for block in blocks():
        if match := NAMED.match(block.text):
            path = write(block, tmp_path)
            path.write_text(block.text if named else block.text[match.end() :], encoding="utf-8")
    (change,) = (block.text for block in blocks() if block.kind == "diff")
    done = subprocess.run(
        command, cwd=tmp_path, input=change, text=True, capture_output=True, timeout=PROCESS_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "on conflict" in (tmp_path / "jobs" / "payments.py").read_text()


def test_what_the_page_shows_is_a_pattern() -> None:
    pattern = shown(["...", "VIOLATED (... lost), expected held: x", "...", "report: reports/..."])
    assert pattern.search("[1 s] set up\nVIOLATED (3 lost), expected held: x\n  1. a\n\nreport: reports/a/b\n")
    assert not pattern.search("VIOLATED (3 lost), expected held: y\nreport: reports/a\n")


def play(folder: Path, programs: Path) -> None:
    """Do all that the page says, with the `onceproof` in the folder `programs`."""
    codes = list(CODES)
    for block in blocks():
        if NAMED.match(block.text):
            write(block, folder)
        elif block.kind == "diff":
            change(block, folder)
        else:
            assert block.kind == "console"
            command, *lines = block.text.splitlines()
            code, said = onceproof(command.removeprefix("$ "), folder, programs)
            assert code == codes.pop(0), said
            assert shown(lines).search(said), said
    assert codes == []


@pytest.mark.stack
def test_the_tutorial_as_a_reader_does_it(tmp_path: Path) -> None:
    play(tmp_path, Path(sys.executable).parent)
