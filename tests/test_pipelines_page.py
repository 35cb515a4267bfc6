"""What pipelines/README.md says of each program is what runs came to: the broken ones show what they are to show, and
the fixed versions hold."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.catalogue import read

PAGE = Path(__file__).parents[1] / "pipelines" / "README.md"
PROGRAM = re.compile(r"`([\w/]+\.py)")
KIND = re.compile(r"\*([a-z ]+)\*")


def claims() -> Iterator[tuple[str, str]]:
    """Each program of a table, also by the name of its file alone, and a word or kind that some run of it has to have
    come to."""
    header: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not (cells and header):
            header = cells
            continue
        row = dict(zip(header, cells, strict=True))
        shown = KIND.findall(row["what shows"])
        yield from ((name, kind) for name in PROGRAM.findall(row.get("broken program", "")) for kind in shown)
        yield from ((name, "held") for name in PROGRAM.findall(row.get("fixed version", "")))


def verdicts() -> dict[str, set[str]]:
    """By program, and by the name of its file, what its runs came to: their words, and the kinds of their findings."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in read():
        for name in PROGRAM.findall(each["row"]["program"]):
            word, _, kinds = each["row"]["verdict"].partition(": ")
            for key in (name, Path(name).name):
                found[key].update((word, *kinds.split(", ")))
    return found


CLAIMS = sorted(set(claims()))
VERDICTS = verdicts()


def test_there_are_claims() -> None:
    assert len({name for name, _ in CLAIMS}) > 50


@pytest.mark.parametrize(("program", "said"), CLAIMS)
def test_a_run_came_to_what_is_said_of_its_program(program: str, said: str) -> None:
    assert said in VERDICTS[program]
