"""Which pipelines are twins, and which of them is the broken one.

Two programs are twins where the runs say so: their scenarios put them to one and the same test (`about.test`:
guarantee, input, schedule, sinks with `key` and `expected`, for programs of one folder), and expect *violated* of one
and *held* of the other. Where nothing says so, no twin is claimed: names of files and scenarios decide nothing.
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
    repaired: frozenset[Row]


def row(seen: Seen) -> Row:
    """Return the row of a run."""
    about = seen.about
    return Row(about.pipeline, about.guarantee, about.source, about.sinks)


def pairs(runs: Sequence[Seen]) -> list[Pair]:
    """Return the twins, a pair for each test that has them."""
    tests: dict[str, list[Seen]] = defaultdict(list)
    for seen in runs:
        if seen.about.test:
            tests[seen.about.test].append(seen)
    out = []
    for own in tests.values():
        broken = frozenset(row(each) for each in own if each.about.expected == Word.VIOLATED)
        repaired = frozenset(row(each) for each in own if each.about.expected == Word.HELD)
        apart = {each.pipeline for each in broken} != {each.pipeline for each in repaired}
        if broken and repaired and apart:
            out.append(Pair(broken, repaired))
    return out


def clusters(rows: Sequence[Row], found: Sequence[Pair]) -> list[list[Row]]:
    """Return the rows with their twins beside them, the broken ones first; a row without twins stands alone."""
    home: dict[Row, int] = {each: number for number, each in enumerate(rows)}
    for pair in found:
        same = {home[each] for each in pair.broken | pair.repaired}
        home = {each: min(same) if number in same else number for each, number in home.items()}
    out: dict[int, list[Row]] = defaultdict(list)
    for each in rows:
        out[home[each]].append(each)
    roles = {each: role(each, found) for each in rows}
    order = {"broken": 0, "": 1, "repaired": 2}
    return [sorted(own, key=lambda each: (order[roles[each]], each)) for own in out.values()]


def role(row: Row, found: Sequence[Pair]) -> str:
    """`broken`, `repaired`, or nothing: it has no twin, or it is one in one test and the other in another."""
    broken = any(row in pair.broken for pair in found)
    repaired = any(row in pair.repaired for pair in found)
    return "" if broken == repaired else "broken" if broken else "repaired"
