"""The scenarios and commands in the documents: each scenario is valid, each command is one of the command line."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from harness.cli import main
from harness.load import load

HOUSE = Path(__file__).parents[1]
PAGES = [HOUSE / "README.md", *sorted((HOUSE / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BEGUN = re.compile(r"(\$ )?onceproof ")
INLINE = re.compile(r"`(onceproof [^`]+)`")
PART = """\
name: a part of a scenario
pipeline: jobs/orders.py
sink: {postgres: orders, expected: select id from ledger, key: [id]}
"""
STEP = "schedule: [{when: {batch: 3}, do: crash before offset commit}]"
IN_PLACE = {"…": "x", "I/N": "1/2", "TIME": "2h", "VERSION": "3.5", "NAME": "x", "N": "1"}
"""What a reader writes for a word that stands for others."""


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the code blocks of a page in these languages."""
    return [text for language, text in BLOCK.findall(page.read_text(encoding="utf-8")) if language in languages]


def scenarios() -> Iterator[Any]:
    """Yield each block of YAML, but for the settings of other tools in docs/ci."""
    for page in (page for page in PAGES if page.parent.name != "ci"):
        for at, text in enumerate(blocks(page, "yaml"), 1):
            yield pytest.param(text, id=f"{page.stem}-{at}")


def commands() -> Iterator[Any]:
    """Yield each command line once, and whether a text only mentions it."""
    shown, mentioned = dict[str, Path](), dict[str, Path]()
    for page in PAGES:
        lines = "\n".join(blocks(page, "", "console", "sh")).replace("\\\n", " ").splitlines()
        shown |= dict.fromkeys((line.removeprefix("$ ") for line in lines if BEGUN.match(line)), page)
        mentioned |= dict.fromkeys(INLINE.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))), page)
    for line, page in {**mentioned, **shown}.items():
        yield pytest.param(line, line not in shown, id=f"{page.stem}: {line}")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has the files that the pages name."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(HOUSE / "pipelines", root / "pipelines")
    for folder in ("scenarios", "jobs", "data"):
        (root / folder).mkdir()
    for name in ("orders", "payments", "errors", "index"):
        (root / "jobs" / f"{name}.py").touch()
    (code,) = blocks(HOUSE / "docs" / "own-reader.md", "python")
    (root / "readback.py").write_text(code)
    (lines,) = blocks(HOUSE / "docs" / "malformed.md", "")
    (root / "data" / "payments.jsonl").write_text(lines)
    return root


def completed(text: str) -> str:
    """Return a scenario: what the block says, and what it leaves out."""
    yaml = YAML()
    given = yaml.load(text)
    if not {"schedule", "crash_points"} & given.keys():
        given |= yaml.load("crash_points: all" if "default" in (given.get("verdict") or ()) else STEP)
    given = yaml.load(PART) | given
    out = StringIO()
    yaml.dump(given, out)
    return out.getvalue()


@pytest.mark.parametrize("text", [*scenarios()])
def test_a_scenario_of_a_page_is_valid(text: str, project: Path) -> None:
    path = project / "scenarios" / "page.yaml"
    path.write_text(completed(text))
    load(path)


@pytest.mark.parametrize(("line", "mentioned"), [*commands()])
def test_a_command_of_a_page_is_one_of_the_command_line(line: str, mentioned: bool) -> None:
    words = [IN_PLACE.get(word, word) for word in shlex.split(line, comments=True)][1:]
    words = words[: next((at for at, word in enumerate(words) if word in ("|", "&&", ";", ">")), None)]
    command = main.get_command(click.Context(main), words[0])
    assert command is not None
    try:
        command.make_context(words[0], words[1:])
    except click.MissingParameter:
        assert mentioned
