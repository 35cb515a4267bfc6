"""A failure that is being worked on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Known:
    """Where it is written down, the last day on which it is no news, such as 2026-12-31, and its kinds of finding."""

    issue: str
    until: str
    violated: tuple[str, ...] = ()

    def covers(self, *, word: str, kinds: Collection[str], day: str) -> bool:
        """Return whether a failure of that day is the known one: violated, with no other kinds. Without kinds that is
        not known."""
        in_time = "" < day <= self.until
        return in_time and word == "violated" and bool(kinds) and {*kinds} <= {*self.violated}
