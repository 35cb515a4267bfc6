"""Two runs of one plan that do not say the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class Said:
    """What one of the two came to: its word, and where it is violated, what it found. `run` is its folder, empty where
    it was not kept."""

    word: str
    kinds: tuple[str, ...] = ()
    run: str = ""

    @property
    def answer(self) -> str:
        """`violated (duplicated, lost)`."""
        return f"{self.word} ({', '.join(self.kinds)})" if self.kinds else self.word


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """A finding of the suite's: `waited` is the run in which a driver had waited ready, `cold` the one in which every
    driver began cold."""

    kind: ClassVar[str] = "disagreement"

    waited: Said
    cold: Said
