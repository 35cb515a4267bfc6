"""Sentences are short: 20 words at most on a page and in a message of the harness, 25 in its docstrings.

A colon and a semicolon end one too. Code and a quotation count as one word. A point of a list, a cell of a table and
an entry of a docstring stand alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import pytest

from tests.test_house import Module, modules

HOUSE = Path(__file__).parents[1]
NAMED = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
PAGES = sorted([*(HOUSE / name for name in NAMED), *HOUSE.glob("docs/**/*.md"), *HOUSE.glob("pipelines/**/*.md")])
MOST, MOST_IN_DOCSTRINGS = 20, 25
BLOCK = re.compile(r"^ *```.*?^ *```|^ *[#>].*?$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
ONE_WORD = re.compile(r'`[^`]*`|"[^"\n]*"')
PART = re.compile(r"\n\s*\n|^ *(?:[-*]|\d+\.) +|\||^ *\S+(?: \S+){0,9}  +(?=\S)", re.MULTILINE)
END = re.compile(r"""(?<=[.:;?!])["')*]*\s+""")
PROGRAM = re.compile(r"\bselect\b.*\bfrom\b|\bcreate (?:table|function)\b| = ", re.IGNORECASE | re.DOTALL)
"""SQL, and code or settings with an assignment."""


def long(text: str, most: int) -> list[str]:
    """Return the sentences of a text that have more words than that."""
    if len(text.split()) <= most:
        return []
    plain = ONE_WORD.sub("CODE", LINK.sub(r"\1", BLOCK.sub("\n\n", text)))
    sentences = [each.split() for part in PART.split(plain) for each in END.split(part)]
    return [" ".join(each) for each in sentences if len(each) > most]


def docstrings(module: Module) -> Iterator[ast.Constant]:
    """Yield the texts of a module that are statements: below a module, a class, a function or a name."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def messages(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the other texts of a module, each with its line. What an f-string fills in is one word."""
    seen = {id(node) for node in docstrings(module)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.JoinedStr):
            seen |= {id(part) for part in node.values}
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in seen:
            yield node.lineno, node.value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOUSE)))
def test_a_page_has_short_sentences(page: Path) -> None:
    assert long(page.read_text(encoding="utf-8"), MOST) == []


def test_messages_have_short_sentences() -> None:
    found = [
        f"{module.name}:{line}: {sentence}"
        for module in modules("harness")
        for line, text in messages(module)
        for sentence in long(text, MOST)
        if not PROGRAM.search(text)
    ]
    assert found == []


def test_docstrings_have_short_sentences() -> None:
    found = [
        f"{module.name}:{node.lineno}: {sentence}"
        for module in modules("harness")
        for node in docstrings(module)
        for sentence in long(cleandoc(str(node.value)), MOST_IN_DOCSTRINGS)
    ]
    assert found == []


WORDS = "one " * 21


@pytest.mark.parametrize(
    "text",
    [WORDS, f"Short. {WORDS}", f"- {WORDS}\n- short", f"| a | {WORDS} |", f"name  {WORDS}", f"`a b` [{WORDS}](to)"],
)
def test_a_long_sentence_is_found(text: str) -> None:
    assert len(long(text, MOST)) == 1
    assert long(text, MOST + 2) == []


@pytest.mark.parametrize("text", [f"`{WORDS}`", f"```\n{WORDS}\n```", f"> {WORDS}", f'"{WORDS}"', f"# {WORDS}"])
def test_code_quotations_and_headings_are_not_counted(text: str) -> None:
    assert long(text, MOST) == []
