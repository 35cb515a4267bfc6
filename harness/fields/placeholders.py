"""`{kafka.bootstrap}` and its like: which there are, what is wrong with a text that uses them, and filling them in.

`{{` and `}}` stand for the braces themselves, as in Python's own format strings. The names come from the one
place that gives them values: `Lease.placeholders`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.errors import UsageError
from harness.fields.phrases import did_you_mean
from harness.stack import Addresses, Lease

BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def _known() -> tuple[str, ...]:
    both = {"main": "", "second": ""}
    lease = Lease(
        run_id="", topic="", group="", schema="", partitions=1, bootstrap="", dsns=both,
        given=Addresses(bootstrap="", dsns=both, jdbc=both),
        spark_master="", spark_home=Path(), folder=Path(), checkpoint=Path(),
    )  # fmt: skip
    return tuple(lease.placeholders())


KNOWN = _known()
"""Every placeholder that a scenario may use, on a stack with both databases."""


def wrong_in(text: str) -> Iterator[str]:
    """What is wrong with the placeholders in `text`."""
    for match in BRACES.finditer(text):
        name = match[1]
        if name is None and len(match[0]) == 1:
            yield f"holds a single {match[0]!r}: write {match[0] * 2!r} for the character itself"
        elif name is not None and name not in KNOWN:
            yield f"holds the unknown placeholder {match[0]!r}{did_you_mean(name, KNOWN)}"


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
