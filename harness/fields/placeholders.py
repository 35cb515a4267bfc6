"""`{kafka.bootstrap}` and its like: which there are, what is wrong with a text that uses them, and filling them in.

`{{` and `}}` stand for the braces themselves, as in Python's own format strings. Which there are, the components say
(`Component.gives`); a run adds its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from harness.component import COMPONENTS
from harness.errors import UsageError
from harness.fields.hints import did_you_mean

BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
WORDS = re.compile("[A-Za-z0-9_. -]+")
"""What may be a slip in the name of a placeholder, unlike what is in braces in JSON."""
DOUBLED = ": braces that are meant as such are doubled, '{{{0}}}'"
OWN = ("checkpoint", "folder", "run", "spark.master", "spark.home")
"""What every run has, whatever components it needs."""
NAME = r"[a-z][a-z0-9_]{0,31}"
"""Of another part of a component: `second`."""


def label(name: str) -> str | None:
    """Return the part that a placeholder belongs to: `postgres.second` for `postgres.second.dsn`; empty for what every
    run has, None if there is no such placeholder."""
    if name in OWN:
        return ""
    part, _, last = name.rpartition(".")
    for kind in COMPONENTS:
        if name in kind.bare:
            return kind.about.name
        if last in kind.gives and re.fullmatch(rf"{kind.about.name}(\.{NAME})?", part):
            return part
    return None


def known() -> tuple[str, ...]:
    """Return every placeholder of the plain parts."""
    whole = (f"{kind.about.name}.{name}" for kind in COMPONENTS for name in kind.gives)
    return (*OWN, *(name for kind in COMPONENTS for name in kind.bare), *whole)


def used(text: str) -> Iterator[str]:
    """Return the names in braces."""
    return (match[1] for match in BRACES.finditer(text) if match[1] is not None)


def wrong_in(text: str) -> Iterator[str]:
    """Yield what is wrong with the placeholders in `text`."""
    for match in BRACES.finditer(text):
        name = match[1]
        if name is None and len(match[0]) == 1:
            yield f"holds a single {match[0]!r}: write {match[0] * 2!r} for the character itself"
        elif name is not None and label(name) is None:
            hint = did_you_mean(name, (*known(), *_beside(name))) if WORDS.fullmatch(name) else DOUBLED.format(match[0])
            yield f"holds the unknown placeholder {match[0]!r}{hint}"


def _beside(name: str) -> tuple[str, ...]:
    """Return those of the part of a component that a name begins with."""
    part, _, _ = name.rpartition(".")
    kinds = (kind for kind in COMPONENTS if re.fullmatch(rf"{kind.about.name}\.{NAME}", part))
    return tuple(f"{part}.{last}" for kind in kinds for last in kind.gives)


def filled(text: str, placeholders: Mapping[str, str]) -> str:
    """`text` with every `{name}` replaced by its value. Raises UsageError for a name that has none."""

    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        if match[1] not in placeholders:
            hint = did_you_mean(match[1], placeholders) or f"; it has {', '.join(sorted(placeholders))}"
            raise UsageError(f"placeholder {match[0]!r} has no value on this stack{hint}")
        return placeholders[match[1]]

    return BRACES.sub(value, text)
