"""Cells packed into runs: each has a batch of its own, and a whole batch after it tells what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.scenario import Expect, Scenario, Step
from harness.suite.side_by_side import alone
from harness.sweep.cells import Cell

MOST = 8
"""Cells of one run."""
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
    """Return the runs that have the cells `which`, places in `cells`, `most` in one. A run has one cell of its first
    batch. A server's outage has a run of its own: other runs may use the server, and the driver goes on meanwhile."""
    outages = [place for place in which if alone(one(base, cells, (place,), first_batch))]
    out = []
    for group, size in (([place for place in which if place not in outages], most), (outages, 1)):
        runs = [[place] for place in group if cells[place].first]
        for place in (place for place in group if not cells[place].first):
            shortest = min(runs, key=len, default=[place] * size)
            if len(shortest) < size:
                shortest.append(place)
            else:
                runs.append([place])
        out += [Packed(scenario=one(base, cells, tuple(run), first_batch), cells=tuple(run)) for run in runs]
    return out


def one(base: Scenario, cells: Sequence[Cell], which: tuple[int, ...], first_batch: int) -> Scenario:
    """Return the scenario that has these cells, one after the other."""
    steps, batch = [], first_batch
    for place in which:
        cell = cells[place]
        batch = first_batch if cell.first else max(batch, first_batch) + APART
        steps.append(Step(when=replace(cell.when, batch=batch), do=cell.do))
    return replace(
        base,
        schedule=tuple(steps),
        expect=Expect(),
        timeout_s=base.timeout_s + STEP_S * len(steps),
        restart=replace(base.restart, max_restarts=max(base.restart.max_restarts, STARTS * len(steps))),
    )
