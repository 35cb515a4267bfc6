"""What a held night says, cell by cell: how many consequential runs of the uniform half held, and the bound of them.

Pure. A run is in a cell if its verdict has something at stake there that would have shown and that the guarantee
forbids. With n such runs of n held, a true share of 3/n would have been seen at 95 % (the rule of three). A cell with
any run that did not hold has no bound, whatever it came to: unknown is not held. Runs again of a plan that failed are
not counted, nor is the weighted half.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.nightly.draw import Half
from harness.nightly.state import Line
from harness.report.stakes import Struck
from harness.scenario import Word

LEAST = 4
"""With fewer runs than this, three in n says nothing."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """One cell of one target: how many consequential runs of the uniform half there were, and how many held."""

    target: str
    struck: Struck
    runs: int
    held: int

    def __str__(self) -> str:
        where = f"{self.target}: {self.struck.fault} at {self.struck.point}, {self.struck.sink}"
        if self.held < self.runs:
            return f"{where}: {self.held} of {self.runs} held, so there is no bound"
        if self.runs < LEAST:
            return f"{where}: {self.runs} of {self.runs} held, too few for a bound"
        return f"{where}: {self.runs} of {self.runs} held; at 95 % fewer than 3 in {self.runs} such hits break it"


def bounds(lines: Iterable[Line]) -> list[Bound]:
    """Every cell that the uniform half has struck."""
    found: dict[tuple[str, Struck], list[bool]] = {}
    for line in lines:
        if line.half != Half.UNIFORM or line.again:
            continue
        for each in line.struck:
            cell = Struck(sink=each[0], point=each[1], fault=each[2])
            found.setdefault((line.target, cell), []).append(line.verdict == Word.HELD)
    return [
        Bound(target=target, struck=cell, runs=len(held), held=sum(held))
        for (target, cell), held in sorted(found.items())
    ]


def told(bounds: Sequence[Bound]) -> list[str]:
    """One line a cell; what is not listed was not struck, so nothing is said of it."""
    if not bounds:
        return ["the uniform half struck no cell: the night bounds nothing"]
    return [*map(str, bounds), "a cell that is not listed was not struck by the uniform half: nothing is said of it"]
