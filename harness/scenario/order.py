"""In which order rows have to stand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Order:
    """Rows with equal `per` must have `follows` rising when sorted by the sink's column `by`."""

    by: str
    follows: str
    per: tuple[str, ...]
