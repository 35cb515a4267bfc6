"""Cells packed into runs: each has its own batch, and a whole batch after it shows what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.scenario import Expected, Scenario, Step
from harness.suite.side_by_side import alone
from harness.sweep.cells import Cell

MOST = 8
"""Steps of one run."""
APART = 2
"""Batches from one cell to the next."""
STEP_S = 60.0
"""What a step may add to a run's time."""
STARTS = 4
"""Starts of the driver that a step may take: Spark 4.1 ends a query at the first restart after a crash."""


@dataclass(frozen=True, kw_only=True)
class Packed:
    """One run: the scenario, and the places of its cells in the list of all, in the order of its schedule."""

    scenario: Scenario
    cells: tuple[int, ...]


def packed(
    base: Scenario, cells: Sequence[Cell], which: Sequence[int], first_batch: int, most: int = MOST
) -> list[Packed]:
    """Return the runs that have the cells `which`, places in `cells`, with `most` steps in one, but for a cell that
    has more; those with the most cells first. A run has one cell of its first batch. A server's outage is alone in its
    run: other runs may use the server, and the driver goes on meanwhile."""
    outages = [place for place in which if alone(one(base, cells, (place,), first_batch))]
    out = []
    for group, size in (([place for place in which if place not in outages], most), (outages, 1)):
        runs = [[place] for place in group if cells[place].first]
        for place in (place for place in group if not cells[place].first):
            shortest = min(runs, key=lambda run: steps(cells, run), default=[])
            if shortest and steps(cells, [*shortest, place]) <= size:
                shortest.append(place)
            else:
                runs.append([place])
        out += [Packed(scenario=one(base, cells, tuple(run), first_batch), cells=tuple(run)) for run in runs]
    return sorted(out, key=lambda run: -len(run.cells))


def steps(cells: Sequence[Cell], which: Sequence[int]) -> int:
    """Return how many steps these cells have."""
    return sum(len(cells[place].steps) for place in which)


def numbered(cells: Sequence[Cell], which: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return by the place of each of these cells the numbers of its steps in a run that has them, from 1."""
    out, last = {}, 0
    for place in which:
        out[place] = tuple(range(last + 1, last + 1 + len(cells[place].steps)))
        last += len(cells[place].steps)
    return out


def one(base: Scenario, cells: Sequence[Cell], which: tuple[int, ...], first_batch: int) -> Scenario:
    """Return the scenario that has these cells, one after the other."""
    schedule, batch = list[Step](), first_batch
    for place in which:
        cell = cells[place]
        batch = first_batch if cell.first else max(batch, first_batch) + APART
        schedule += (replace(step, when=replace(step.when, batch=batch)) for step in cell.steps)
    return replace(
        base,
        schedule=tuple(schedule),
        crash_points=(),
        verdict=Expected(),
        timeout_s=base.timeout_s + STEP_S * len(schedule),
        restart=replace(base.restart, max_restarts=max(base.restart.max_restarts, STARTS * len(schedule))),
    )
