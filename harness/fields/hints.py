"""The two phrases that every refusal needs: what was seen, and what may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def seen(value: object) -> str:
    """Return a value as a message shows it: short, on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    return "a mapping" if isinstance(value, dict) else "a list"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing if nothing is near."""
    near = [each for each in difflib.get_close_matches(name[:100], list(known)) if _alike(name[:100], each)]
    return f"; did you mean {near[0]!r}?" if near else ""


def _alike(name: str, other: str) -> bool:
    """Return whether they are alike, word by word. `kill files` and `kill s3` share one, and mean two things."""
    ours, theirs = name.split(), other.split()
    if len(ours) != len(theirs):
        return True
    return all(difflib.get_close_matches(mine, [its]) for mine, its in zip(ours, theirs, strict=True))
