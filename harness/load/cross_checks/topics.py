"""Several topics of the source, and a program that is given the name of the first alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness.fields.placeholders import used
from harness.load.with_header import Claim
from harness.scenario import Input

TOPIC = re.compile(r"\{(?:\w+\.)?topic\}")
SEVERAL = ("topics", "pattern")
"""The placeholders that stand for all of them, without their component."""


def check_topics(claim: Claim, *, root: Path) -> None:
    """Add that records of the others would never be read, as far as arguments and program show. Nothing is guessed of
    a program that may make a pattern of the name, or that leaves the reading to another module."""
    given, texts = claim.input, list(_texts(claim))
    if given.get("topics", 1) < 2 or not claim.whole:
        return
    named = {name.rpartition(".")[2] for text in texts for name in used(text)}
    firsts = [text for text in texts if TOPIC.search(text)]
    made = any("pattern" in text.lower() for text in texts) or not all(map(TOPIC.fullmatch, firsts))
    if firsts and not named.intersection(SEVERAL) and not made and _subscribes(root / claim.pipeline.get("entry")):
        kind = given.get("source", Input.source)
        each = f"{{{kind}.topics}} (all of them, with commas) or {{{kind}.pattern}} (for `subscribePattern`)"
        words = f"feeds {given.get('topics')} topics, and the program is given {firsts[0]} alone, the first of them"
        given.wrong(f"{given.path}.topics {words}: give it {each}", "topics")


def _texts(claim: Claim) -> Iterator[str]:
    yield from claim.get("args", ())
    for key in ("env", "conf"):
        yield from claim.get(key, {}).values()


def _subscribes(program: Path) -> bool:
    """Return whether it subscribes to what it is called with itself, and to no pattern. One that cannot be read does
    not."""
    with suppress(OSError, UnicodeDecodeError):
        text = program.read_text(encoding="utf-8")
        return "subscribe" in text and "pattern" not in text.lower()
    return False
