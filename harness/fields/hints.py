"""The two phrases that every refusal needs: what was seen, and what may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def seen(value: object) -> str:
    """A value as a message shows it: short, on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    return "a mapping" if isinstance(value, dict) else "a list"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing if nothing is near."""
    near = difflib.get_close_matches(name[:100], list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
