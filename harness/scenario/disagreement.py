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
    """A finding of the suite's: `waited` is the first run, `cold` the second, in which every driver began cold.
    `standby`: in the first a driver had waited ready. `beside`: others were played beside the first, none beside the
    second."""

    kind: ClassVar[str] = "disagreement"

    waited: Said
    cold: Said
    standby: bool = True
    beside: bool = False

    @property
    def ways(self) -> tuple[str, str]:
        """How the first was played, and the second."""
        first = [*["a driver had waited ready"] * self.standby, *["others were played beside it"] * self.beside]
        second = [*["nobody was beside it"] * self.beside, "all drivers began cold"]
        return ", ".join(first), ", ".join(second)
