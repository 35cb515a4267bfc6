"""Scenarios by versions of Spark: what each came to on each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.many.seen import Seen


@dataclass(frozen=True, kw_only=True)
class Line:
    """One scenario: its runs by version, in the order of the heads, and whether they came to several things."""

    name: str
    cells: list[list[Seen]]
    differs: bool


@dataclass(frozen=True, kw_only=True)
class Versions:
    """Empty where the runs had one version. `left` counts the scenarios that do not fit."""

    heads: list[str]
    lines: list[Line]
    differing: int
    left: int


def versions(runs: Sequence[Seen], *, rows: int) -> Versions:
    """Scenarios that differ come first. A run that does not say its version is left out."""
    heads = sorted({seen.about.spark for seen in runs} - {""}, key=_numbers)
    if len(heads) < 2:
        return Versions(heads=[], lines=[], differing=0, left=0)
    by_scenario: dict[str, list[Seen]] = defaultdict(list)
    for seen in runs:
        if seen.about.spark:
            by_scenario[seen.file or seen.scenario].append(seen)
    lines = [_line(name, own, heads) for name, own in sorted(by_scenario.items())]
    lines.sort(key=lambda line: not line.differs)
    differing = sum(line.differs for line in lines)
    return Versions(heads=heads, lines=lines[:rows], differing=differing, left=max(0, len(lines) - rows))


def _line(name: str, own: Sequence[Seen], heads: Sequence[str]) -> Line:
    cells = [[seen for seen in own if seen.about.spark == head] for head in heads]
    return Line(name=name, cells=cells, differs=len({(seen.word, *sorted(seen.kinds)) for seen in own}) > 1)


def _numbers(version: str) -> tuple[list[int], str]:
    """`4.10.0` comes after `4.9.0`."""
    return [int(part) for part in version.split(".") if part.isdecimal()], version
