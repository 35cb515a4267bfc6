"""The pairs among the pipelines of many runs: a broken version and a fixed one.

Two programs are a pair where their scenarios have the same test (`about.test`: guarantee, input, schedule, sinks with
`key` and `expected`, for programs of one folder) and expect *violated* of one and *held* of the other. Names of files
and scenarios decide nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from harness.report.many.seen import Seen
from harness.scenario import Word


class Row(NamedTuple):
    """A pipeline with what it is asked for."""

    pipeline: str
    guarantee: str
    source: str
    sinks: tuple[str, ...]


class Pair(NamedTuple):
    """Rows of one test: those expected to break, and those expected to hold."""

    broken: frozenset[Row]
    fixed: frozenset[Row]


def row(seen: Seen) -> Row:
    """Return the row of a run."""
    about = seen.about
    return Row(about.pipeline, about.guarantee, about.source, about.sinks)


def find(runs: Sequence[Seen]) -> list[Pair]:
    """Return a pair for each test that has one."""
    tests: dict[str, list[Seen]] = defaultdict(list)
    for seen in runs:
        if seen.about.test:
            tests[seen.about.test].append(seen)
    out = []
    for own in tests.values():
        broken = frozenset(row(each) for each in own if each.about.expected == Word.VIOLATED)
        fixed = frozenset(row(each) for each in own if each.about.expected == Word.HELD)
        apart = {each.pipeline for each in broken} != {each.pipeline for each in fixed}
        if broken and fixed and apart:
            out.append(Pair(broken, fixed))
    return out


def clusters(rows: Sequence[Row], found: Sequence[Pair]) -> list[list[Row]]:
    """Return the rows, those of a pair together and broken versions first; a row of no pair is alone."""
    home: dict[Row, int] = {each: number for number, each in enumerate(rows)}
    for pair in found:
        same = {home[each] for each in pair.broken | pair.fixed}
        home = {each: min(same) if number in same else number for each, number in home.items()}
    out: dict[int, list[Row]] = defaultdict(list)
    for each in rows:
        out[home[each]].append(each)
    roles = {each: role(each, found) for each in rows}
    order = {"broken": 0, "": 1, "fixed": 2}
    return [sorted(own, key=lambda each: (order[roles[each]], each)) for own in out.values()]


def role(row: Row, found: Sequence[Pair]) -> str:
    """Return `broken`, `fixed`, or nothing: the row is of no pair, or broken in one test and fixed in another."""
    broken = any(row in pair.broken for pair in found)
    fixed = any(row in pair.fixed for pair in found)
    return "" if broken == fixed else "broken" if broken else "fixed"
