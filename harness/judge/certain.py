"""Which harms a wrong total cannot do without, under a guarantee that allows one of the two.

A sum is no witness: one record lost and another counted twice may come to any total. Only what holds for every way in
which records can be lost or repeated is said. In a column that is the sum of what each record gives to it, none of them
negative, a total that is too low lost something, one that is too high counted something again, and one that is lower
than without all that hits had at stake lost something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext

from harness.checkers.cells import Cell, Row
from harness.checkers.compare import Key
from harness.checkers.explain import EXACT, decimal, single
from harness.checkers.spans import Cut, Span, Spans, joined
from harness.judge.scale import Scale
from harness.judge.stakes import Weighed
from harness.scenario import Finding, Harm, Kind

PIECES_MAX = 1_000
"""The effect is run on so many pieces of the ledger at most: single records, or stretches of equal length."""


def certainly(scale: Scale, findings: Sequence[Finding], weighed: Sequence[Weighed]) -> list[Finding]:
    """The findings of one sink, its wrong totals with their harms, and whether they miss more than was at stake."""
    if scale.allows is None or all(finding.kind is not Kind.WRONG_AGGREGATE for finding in findings):
        return list(findings)
    open_ = joined(*(each.missing for each in weighed), *_saved(weighed))
    with localcontext(EXACT):
        growing = _growing(scale)
        least = _rows(scale, Cut(without=open_))
        return [_told(each, growing, least) if each.kind is Kind.WRONG_AGGREGATE else each for each in findings]


@dataclass(frozen=True)
class _Growing:
    """By key, the columns that only grow, by their place, and what is expected there."""

    columns: tuple[str, ...]
    known: dict[Key, dict[int, Decimal]]


def _saved(weighed: Sequence[Weighed]) -> Iterator[Spans]:
    """What saved offsets call done may have been in hand as well."""
    yield from (each.reach.last for each in weighed if each.reach is not None and each.reach.own)


def _growing(scale: Scale) -> _Growing:
    case = scale.case
    # Where the run is not drained, what is expected is not the sum of all pieces, and nothing is said.
    whole = single(case.expected, case.key_places())
    twice = _rows(scale, Cut(again=(scale.effects.extent(),)))
    pieces = [_rows(scale, Cut(only=(piece,))) for piece in _pieces(scale)]
    known: dict[Key, dict[int, Decimal]] = {}
    for key in whole.keys() & twice.keys():
        given = [piece[key] for piece in pieces if key in piece]
        for place in case.payload_places():
            cells = [row[place] for row in (whole[key], twice[key], *given)]
            if case.families[place] == "number" and (total := _sum(cells)) is not None:
                known.setdefault(key, {})[place] = total
    return _Growing(case.columns, known)


def _sum(cells: Sequence[Cell]) -> Decimal | None:
    """The total, if it is what the pieces give in all, none of them negative, and twice as much of every record twice.
    `cells` are the total, that of every record twice, and what each piece gives."""
    numbers = [number for cell in cells if (number := decimal(cell)) is not None and number >= 0]
    if len(numbers) < len(cells):
        return None
    total, twice, *given = numbers
    return total if total == sum(given) and twice == 2 * total else None


def _told(finding: Finding, growing: _Growing, least: dict[Key, Row]) -> Finding:
    key = tuple(finding.key.values())
    harms, beyond = set[Harm](), False
    for place, expected in growing.known.get(key, {}).items():
        found = decimal(finding.found[0][growing.columns[place]])
        if found is None or found == expected:
            continue
        harms.add(Harm.LOSS if found < expected else Harm.REPETITION)
        beyond = beyond or found < (decimal(least[key][place]) or 0 if key in least else 0)
    return replace(finding, harms=tuple(sorted(harms)), staked=finding.staked if beyond else True)


def _rows(scale: Scale, cut: Cut) -> dict[Key, Row]:
    """The one row of each key."""
    return single(scale.rows(cut), scale.case.key_places())


def _pieces(scale: Scale) -> Iterator[Span]:
    spans = scale.effects.extent()
    length = -(-sum(span.end - span.start for span in spans) // PIECES_MAX) or 1
    for span in spans:
        for start in range(span.start, span.end, length):
            yield span._replace(start=start, end=min(start + length, span.end))
