"""Crash points by faults and sinks: which cells were struck, by the verdicts' exposures alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.exposures import Struck
from harness.report.many.seen import Seen
from harness.scenario import Word


@dataclass(frozen=True, kw_only=True)
class Cell:
    """`struck` runs, by word; `idle` runs whose fault was injected there with nothing exposed that would have shown."""

    struck: int
    words: str
    idle: int


@dataclass(frozen=True, kw_only=True)
class GridLine:
    """One crash point of one sink."""

    sink: str
    point: str
    cells: list[Cell]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """`heads` are the faults that the runs' schedules name; what does not fit is counted."""

    heads: list[str]
    lines: list[GridLine]
    struck: int
    never: int
    left_lines: int
    left_heads: int


def grid(runs: Sequence[Seen], *, rows: int, heads: int) -> Grid:
    """Return every crash point that a verdict knows of a sink, by every fault that was done or planned."""
    found: dict[Struck, Counter[Word]] = defaultdict(Counter)
    idle: Counter[Struck] = Counter()
    points: set[tuple[str, str]] = set()
    planned: Counter[str] = Counter()
    for seen in runs:
        for cell in seen.struck:
            found[cell][seen.word] += 1
        idle.update(seen.idle)
        points.update((cell.sink, cell.point) for cell in (*seen.struck, *seen.idle))
        points.update(seen.unstruck)
        planned.update({fault for fault, _, _ in seen.steps} | {outcome.name for outcome in seen.outcomes})
    faults = [fault for fault, _ in sorted(planned.items(), key=lambda each: (-each[1], each[0]))]
    shown = sorted(points)[:rows]
    lines = [
        GridLine(
            sink=sink,
            point=point,
            cells=[_cell(found, idle, Struck(sink=sink, point=point, fault=fault)) for fault in faults[:heads]],
        )
        for sink, point in shown
    ]
    return Grid(
        heads=faults[:heads],
        lines=lines,
        struck=len(found),
        never=len(points) * len(faults) - len(found.keys() | idle.keys()),
        left_lines=len(points) - len(shown),
        left_heads=len(faults) - len(faults[:heads]),
    )


def _cell(found: dict[Struck, Counter[Word]], idle: Counter[Struck], cell: Struck) -> Cell:
    words = found.get(cell, Counter())
    counts = ", ".join(f"{words[word]} {word.value}" for word in Word if words[word])
    return Cell(struck=sum(words.values()), words=counts, idle=idle[cell])
