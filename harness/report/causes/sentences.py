"""Plain sentences: how counts, batches and faults are said, and how a long reason becomes short sentences.

Pure. A sentence has at most `MOST_WORDS` words, ends with a full stop, and names who did what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.report.escape import visible

MOST_WORDS = 25
NAME = 48
# Where a long sentence may be divided, the best places first. The words on both sides stand by themselves.
BREAKS = ("; ", ": ", ", so ", ", and ", ", but ", ", which ", " because ", ", ", " (", " and ", " or ")
ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z“`\"])")


def sentence(text: str) -> str:
    """`text` with a capital and a full stop. A path, or a name of a program, stays as it is."""
    text = text.strip().rstrip(";,:")
    if not text:
        return ""
    head = text[0].upper() + text[1:] if text.split()[0].rstrip(",:;").isalpha() else text
    return head if head[-1] in ".!?…" else f"{head}."


def sentences(reason: str) -> list[str]:
    """Return a reason as plain sentences. What is no prose (a line of a log, say) stays one line each."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return [part for line in lines for whole in ENDS.split(line) for part in _short(whole) if part]


def _short(text: str) -> Iterator[str]:
    if words(text) <= MOST_WORDS:
        yield sentence(text)
        return
    places = [(text.find(mark, 1), mark) for mark in BREAKS]
    found = next(((at, mark) for at, mark in places if at > 0), None)
    if found is None:
        yield sentence(text)
        return
    at, mark = _middle(text, found[1])
    yield from _short(text[:at])
    yield from _short(text[at + len(mark) :] if mark != " (" else text[at + 2 :].rstrip(")."))


def _middle(text: str, mark: str) -> tuple[int, str]:
    """Of the places of a mark, the one nearest to the middle."""
    places = [each.start() for each in re.finditer(re.escape(mark), text) if each.start() > 0]
    return min(places, key=lambda at: abs(at - len(text) // 2)), mark


def words(text: str) -> int:
    """Return how many words a text has."""
    return len(text.split())


def listed(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


def batches(numbers: Sequence[int], query: str = "") -> str:
    """`batch 3`, `batches 3 and 4`, `batches 3 to 9`, `12 batches between 3 and 40`."""
    of = f" of {visible(query, NAME)}" if query else ""
    if len(numbers) == 1:
        return f"batch {numbers[0]}{of}"
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 2:
        return f"batches {first} and {last}{of}"
    if last - first + 1 == len(numbers):
        return f"batches {first} to {last}{of}"
    return f"{len(numbers):,} batches between {first} and {last}{of}"


def short(name: str) -> str:
    """Return the name of a sink, cut if it is a long query."""
    return visible(name, NAME) if len(name) <= NAME else f"{visible(name[: NAME - 1])}…"
