"""How much of a run its page shows. The page of any run stays under `MOST_BYTES`: one that comes out larger is made
again with the next, leaner budget."""

from __future__ import annotations

from dataclasses import dataclass

MOST_BYTES = 300_000


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What is shown at most; the rest is counted, and is in the run folder."""

    groups: int = 10
    """Causes."""
    samples: int = 3
    """Findings of each, with their rows side by side."""
    folded: int = 150
    """Further findings on the whole page, a line each."""
    columns: int = 16
    """Columns of a sample."""
    events: int = 400
    """Lines of the history."""
    lines: int = 300
    """Lines of the scenario file."""
    settings: int = 400
    """Versions and settings."""
    text: int = 2000
    """Characters of one text."""
    cell: int = 120
    """Characters of one cell of a row."""


FULL = Budget()
LEAN = Budget(samples=2, folded=60, columns=10, events=120, lines=120, settings=200, text=500, cell=60)
BARE = Budget(groups=4, samples=1, folded=0, columns=5, events=20, lines=40, settings=60, text=100, cell=30)
EVERY = (FULL, LEAN, BARE)
