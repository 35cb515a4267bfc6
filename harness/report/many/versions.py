"""Scenarios by versions of Spark: what each came to on each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.many.matrix import MARKS, Link
from harness.report.many.seen import Seen


@dataclass(frozen=True, kw_only=True)
class Came:
    """One run."""

    mark: str
    word: str
    kinds: str
    wrong: bool
    link: str | None


@dataclass(frozen=True, kw_only=True)
class Line:
    """One scenario: its runs by version, in the order of the heads, and whether they came to several things."""

    name: str
    cells: list[list[Came]]
    differs: bool


@dataclass(frozen=True, kw_only=True)
class Versions:
    """Empty where the runs had one version. `left` counts the scenarios that do not fit."""

    heads: list[str]
    lines: list[Line]
    differing: int
    left: int


def versions(runs: Sequence[Seen], link: Link, *, rows: int) -> Versions:
    """Scenarios that differ come first. A run that does not say its version is left out."""
    heads = sorted({seen.about.spark for seen in runs} - {""}, key=_numbers)
    if len(heads) < 2:
        return Versions(heads=[], lines=[], differing=0, left=0)
    by_scenario: dict[str, list[Seen]] = defaultdict(list)
    for seen in runs:
        if seen.about.spark:
            by_scenario[seen.file or seen.scenario].append(seen)
    lines = [_line(name, own, heads, link) for name, own in sorted(by_scenario.items())]
    lines.sort(key=lambda line: not line.differs)
    differing = sum(line.differs for line in lines)
    return Versions(heads=heads, lines=lines[:rows], differing=differing, left=max(0, len(lines) - rows))


def _line(name: str, own: Sequence[Seen], heads: Sequence[str], link: Link) -> Line:
    cells = [[_came(seen, link) for seen in own if seen.about.spark == head] for head in heads]
    return Line(name=name, cells=cells, differs=len({(came.word, came.kinds) for cell in cells for came in cell}) > 1)


def _came(seen: Seen, link: Link) -> Came:
    kinds = ", ".join(sorted(seen.kinds)) if seen.kinds else ""
    return Came(mark=MARKS[seen.word], word=seen.word.value, kinds=kinds, wrong=seen.wrong, link=link(seen.folder))


def _numbers(version: str) -> tuple[list[int], str]:
    """`4.10.0` comes after `4.9.0`."""
    return [int(part) for part in version.split(".") if part.isdecimal()], version
