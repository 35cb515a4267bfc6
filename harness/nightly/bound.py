"""What a held night says, cell by cell and target by target: how many runs of the uniform half held, and their bound.

Pure. A run is in a cell if its verdict exposes something there that would have shown and that the guarantee
forbids. With n such runs of n held, a true share of 3/n would have been seen at 95 % (the rule of three). That is said
of each line by itself, not of all of them together.

What fails takes bounds away, whichever half or corpus it is of: an error those of its target, a run that is violated or
inconclusive those of the faults that were injected in it. An untested run says nothing in either way. Runs again of a
plan are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.nightly.draw import Half
from harness.nightly.state import Line
from harness.scenario import Word

LEAST = 4
"""With fewer runs than this, three in n says nothing."""

Cell = tuple[str, str, str, str]
"""Target, sink, crash point as the snapshot shows it, fault. Of a whole target the last three are empty."""


@dataclass(frozen=True, kw_only=True, order=True)
class Bound:
    """One cell: how many consequential runs of the uniform half held there, and whether anything failed in it."""

    cell: Cell
    held: int
    clean: bool = True

    def __str__(self) -> str:
        target, sink, point, fault = self.cell
        where = f"{target}: {fault} at {point}, {sink}" if fault else f"{target}, any of its cells"
        if not self.clean:
            return f"{where}: a run there did not hold, so there is no bound"
        if self.held < LEAST:
            return f"{where}: {self.held} of {self.held} held, too few for a bound"
        return f"{where}: {self.held} of {self.held} held; at 95 % fewer than 3 in {self.held} such runs break it"


def bounds(lines: Iterable[Line], earlier: Mapping[Cell, Bound] | None = None) -> list[Bound]:
    """Return every target and cell that the uniform half has struck, with what `earlier` nights of the same list
    found."""
    lines = list(lines)
    counts = {cell: each.held for cell, each in (earlier or {}).items()}
    for line in lines:
        if line.half == Half.UNIFORM and not line.again and line.struck and line.verdict != Word.UNTESTED:
            for cell in ((line.target, "", "", ""), *((line.target, *each) for each in line.struck)):
                counts[cell] = counts.get(cell, 0) + (line.verdict == Word.HELD)
    spoilt = {cell for cell, each in (earlier or {}).items() if not each.clean}
    spoilt |= {cell for cell in counts if any(_spoils(line, cell) for line in lines)}
    return [Bound(cell=cell, held=held, clean=cell not in spoilt) for cell, held in sorted(counts.items())]


def _spoils(line: Line, cell: Cell) -> bool:
    if line.verdict in (Word.HELD, Word.UNTESTED) or line.target != cell[0]:
        return False
    faults = {fault for _, _, fault in (*line.injected, *line.struck)}
    return line.verdict == Word.ERROR or not cell[3] or cell[3] in faults


def described(bounds: Sequence[Bound]) -> list[str]:
    """Return one line for each target and cell; a cell that is not listed was not struck."""
    if not bounds:
        return ["the uniform half struck no cell: the night bounds nothing"]
    return [
        *map(str, bounds),
        "each line by itself; a cell that is not listed was not struck by the uniform half: nothing is said of it",
    ]
