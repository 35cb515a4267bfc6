"""Where the seconds went: a bar a run, the longest first, divided into the phases that its history names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.many.seen import Seen

WIDE = 200
COLOURS = 6
NARROWEST = 0.3
"""Of a bar's 200; what is narrower is not seen."""
BEFORE_PHASES = "before the first phase"
"""Making the run's part of the stack; all of a run whose history names no phase."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One phase of a bar. `colour` counts from 0; -1 is a phase without its own colour."""

    x: float
    wide: float
    colour: int


@dataclass(frozen=True, kw_only=True)
class Durations:
    """The longest runs with their bars, what the phases took of all of them together, and how many are left out."""

    runs: list[tuple[Seen, list[Part]]]
    phases: list[tuple[int, str, str]]
    total: str
    left: int


def durations(runs: Sequence[Seen], *, most: int) -> Durations:
    """Return at most so many runs."""
    ordered = sorted(runs, key=lambda seen: (-seen.seconds, seen.scenario, str(seen.folder)))
    timed = [seen for seen in ordered if seen.seconds > 0]
    totals: Counter[str] = Counter()
    for seen in timed:
        for name, seconds in _parts(seen):
            totals[name] += seconds  # type: ignore[assignment]  # seconds, not a count
    names = [name for name, _ in sorted(totals.items(), key=lambda each: (-each[1], each[0]))][:COLOURS]
    colours = {name: number for number, name in enumerate(names)}
    longest = timed[0].seconds if timed else 1.0
    return Durations(
        runs=[(seen, _bar(seen, colours, longest)) for seen in timed[:most]],
        phases=[(colours[name], name, f"{totals[name]:,.0f}") for name in names],
        total=f"{sum(seen.seconds for seen in timed):,.0f}",
        left=len(timed) - len(timed[:most]),
    )


def _parts(seen: Seen) -> list[tuple[str, float]]:
    phases = [(name, max(0.0, seconds)) for name, seconds in seen.about.phases]
    rest = seen.seconds - sum(seconds for _, seconds in phases)
    return [*([(BEFORE_PHASES, rest)] if rest > 0 else []), *phases]


def _bar(seen: Seen, colours: dict[str, int], longest: float) -> list[Part]:
    parts, at = [], 0.0
    for name, seconds in _parts(seen):
        wide = WIDE * min(seconds, longest) / longest
        if wide >= NARROWEST:
            parts.append(Part(x=round(at, 1), wide=round(wide, 1), colour=colours.get(name, -1)))
        at += wide
    return parts
