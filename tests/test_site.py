"""The site of `make docs`: it has each page once, its pages are short, and its lists are lists to Python-Markdown
too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

HOUSE = Path(__file__).parents[1]
PAGES = sorted((HOUSE / "docs").glob("*.md"))
GENERATED = {"kinds.md", "settings.md", "history.md"}
MOST_WORDS = 1200
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LIST = re.compile(r"(- |\d+\. )")
INDENTED = re.compile(r" {1,3}(- |\d+\. )")


def listed(nav: Any) -> Iterator[str]:
    """The pages of a navigation, in its order."""
    for each in nav:
        for value in each.values() if isinstance(each, dict) else [each]:
            yield from [value] if isinstance(value, str) else listed(value)


def prose(page: Path) -> list[str]:
    """The lines of a page without code, with an empty line for it."""
    return CODE.sub("", page.read_text(encoding="utf-8")).splitlines()


def test_the_site_has_each_page_once() -> None:
    nav = [name for name in listed(YAML(typ="safe").load(HOUSE / "mkdocs.yml")["nav"]) if name.startswith("docs/")]
    assert sorted(nav) == sorted([f"docs/{page.name}" for page in PAGES] + ["docs/ci/README.md"])


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in GENERATED], ids=lambda page: page.stem)
def test_a_page_is_of_one_idea(page: Path) -> None:
    words = [word for line in prose(page) if not line.startswith("|") for word in line.split()]
    assert len(words) <= MOST_WORDS


@pytest.mark.parametrize("page", [*PAGES, HOUSE / "README.md"], ids=lambda page: page.stem)
def test_a_list_begins_after_an_empty_line(page: Path) -> None:
    """GitHub needs none, Python-Markdown takes such a list for text; one inside another it sees by four spaces."""
    lines = ["", *prose(page)]
    inside, amiss = False, []
    for before, line in pairwise(lines):
        if LIST.match(line) and not inside and before and not before.startswith("#"):
            amiss.append(line)
        inside = bool(line) and (inside or line.startswith("    ") or bool(LIST.match(line)))
    assert amiss == []
    assert [line for line in lines if INDENTED.match(line)] == []
