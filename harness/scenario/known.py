"""A failure that is being worked on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Known:
    """Where it is written down, and the last day on which it is no news, such as 2026-12-31."""

    issue: str
    until: str
