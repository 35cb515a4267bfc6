"""Why a total is wrong: which whole batches, counted again or not at all, make up the difference exactly.

`expected`, run over one batch's records alone, gives that batch's contribution to a key. A column is additive if the
contributions of all batches sum up to what is expected; only such columns can be explained, and all that differ must
be. Sums are exact (Decimal, no float column). Every single batch and every pair that explains a total is an option. A
whole batch counts in all of its keys: options that the sink's other keys bear out push aside those that they refute.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import partial
from itertools import repeat
from operator import sub

from harness.checkers.cells import Cell, Row
from harness.checkers.compare import Case, Key, Mark, key_of
from harness.scenario import Finding, Kind

TOO_HIGH = "too high by exactly"
TOO_LOW = "too low by exactly"

Contributions = Mapping[int, Mapping[Key, Row]]
"""By batch, the one row that each key has in `expected` over that batch's records alone."""

Signed = tuple[int, int]
"""(+1 too high or -1 too low, batch)."""

Vector = tuple[Decimal, ...]

ROUNDING = 1e-9
"""Difference up to which two float totals may be the same sum in another order. It is a part of the total, or of the
largest number that went into it."""

EXACT = Context(prec=200)
"""Wide enough for the sum of any numbers that the engines hold."""


Option = tuple[Signed, ...]

SHOWN = 3
"""How many options a note tells."""


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The shape of an aggregating sink, and what each batch gave. `excluded` are keys that are wrong in a way that is
    not among the findings: the explanation does not use them."""

    columns: tuple[str, ...]
    families: tuple[str, ...]
    payload: tuple[int, ...]
    contributions: Contributions
    excluded: frozenset[Key] = frozenset()


def single(rows: Sequence[Row], places: Sequence[int]) -> dict[Key, Row]:
    """Return rows by key; a key of several rows is no total."""
    keys = Counter(key_of(row, places) for row in rows)
    return {key: row for row in rows if keys[key := key_of(row, places)] == 1}


def explain(findings: Sequence[Finding], totals: Totals) -> list[tuple[Option, ...]]:
    """Return for each finding every option: signed batches, one or two, that explain its difference; empty where none
    do. What a column shows that is no sum, such as an average, has to be explained too."""
    with localcontext(EXACT):
        every = [_options(finding, totals) for finding in findings]
        single = [finding for finding in findings if _single(finding)]
        every_sum = [set(_places(finding, totals)) for finding in single]
        sums = [place for place in totals.payload if all(place in known for known in every_sum)]
        gaps = {tuple(finding.key.values()): _gap(finding, totals, sums) for finding in single}
        excluded = totals.excluded.union(
            key for finding in findings if (key := tuple(finding.key.values())) not in gaps
        )
        found = {option for options in every for option in options}
        borne = {
            option
            for option in found
            if all(key in excluded or _agrees(key, vector, gaps) for key, vector in _would(option, totals, sums))
        }
    return [tuple([o for o in options if o in borne] or options) for options in every]


def note(options: Sequence[Option]) -> str:
    """Return the options in words, e.g. `too high by exactly batch 3`; empty if there are none."""
    shown = " or ".join(map(_words, options[:SHOWN]))
    return f"{shown} or {len(options) - SHOWN} more ways" if len(options) > SHOWN else shown


def _words(option: Option) -> str:
    parts = []
    for sign, words in ((1, TOO_HIGH), (-1, TOO_LOW)):
        batches = [str(batch) for each, batch in option if each == sign]
        if batches:
            parts.append(f"{words} {'batches' if len(batches) > 1 else 'batch'} {' and '.join(batches)}")
    return " and ".join(parts)


def _single(finding: Finding) -> bool:
    return len(finding.expected) == len(finding.found) == 1


def _gap(finding: Finding, totals: Totals, places: Sequence[int]) -> Vector | None:
    """Return what is there beyond what is expected; None if one of these is no number."""
    found, expected = (_vector(_cells(side[0], totals), places) for side in (finding.found, finding.expected))
    return None if found is None or expected is None else tuple(map(sub, found, expected))


def _would(option: Option, totals: Totals, sums: Sequence[int]) -> Iterator[tuple[Key, Vector]]:
    """Yield by how much each key that the option's batches touch would be wrong."""
    out: dict[Key, dict[int, Decimal]] = {}
    for sign, batch in option:
        for key, row in totals.contributions[batch].items():
            would = out.setdefault(key, dict.fromkeys(sums, Decimal(0)))
            for place in sums:
                would[place] += sign * (decimal(row[place]) or 0)
    yield from ((key, tuple(would.values())) for key, would in out.items())


def _agrees(key: Key, would: Vector, gaps: Mapping[Key, Vector | None]) -> bool:
    """Return whether the key is wrong by exactly that. A key that is not among the findings is right."""
    return gaps.get(key, (Decimal(0),) * len(would)) == would


def _options(finding: Finding, totals: Totals) -> list[Option]:
    """Return all single batches and all pairs that explain the finding."""
    if not _single(finding):
        return []
    rows, places = _given(finding, totals), _places(finding, totals)
    expected, found = (_cells(side[0], totals) for side in (finding.expected, finding.found))
    if not places or any(expected[p] != found[p] and p not in places for p in totals.payload):
        return []
    gap = _gap(finding, totals, places)
    if gap is None:
        return []
    vectors = [(batch, vector) for batch, row in rows.items() if (vector := _vector(row, places))]
    signed = {(sign, batch): tuple(sign * x for x in vector) for batch, vector in vectors for sign in (1, -1)}
    singles = [((sign, batch),) for (sign, batch), vector in signed.items() if vector == gap]
    return [*sorted(singles, reverse=True), *sorted(_pairs(gap, signed), reverse=True)]


def _given(finding: Finding, totals: Totals) -> dict[int, Row]:
    """Return what each batch gave to the finding's key."""
    key = tuple(finding.key.values())
    return {batch: by_key[key] for batch, by_key in totals.contributions.items() if key in by_key}


def _cells(row: Mapping[str, Cell], totals: Totals) -> Row:
    return tuple(row[name] for name in totals.columns)


def _places(finding: Finding, totals: Totals) -> list[int]:
    """Return the columns that are sums of what the batches gave. A maximum is not: it neither supports nor refutes an
    option."""
    expected, rows = _cells(finding.expected[0], totals), _given(finding, totals).values()
    return [p for p in totals.payload if totals.families[p] == "number" and _additive(p, expected[p], rows)]


def _pairs(gap: Vector, signed: Mapping[Signed, Vector]) -> Iterator[Option]:
    """Pairs that sum up to the gap. A batch may be counted twice again, but not be missing twice, nor be both."""
    by_vector: dict[Vector, list[Signed]] = {}
    for name, vector in signed.items():
        by_vector.setdefault(vector, []).append(name)
    for one, vector in signed.items():
        rest = tuple(map(sub, gap, vector))
        for other in by_vector.get(rest, ()):
            if one[1] < other[1] or (one == other and one[0] == 1):
                yield one, other


def _additive(place: int, expected: Cell, rows: Iterable[Row]) -> bool:
    """Return whether the batches' cells sum up to the expected one."""
    cells = [decimal(row[place]) for row in rows]
    whole = decimal(expected)
    return whole is not None and None not in cells and sum(cell for cell in cells if cell is not None) == whole


def _vector(row: Row, places: Sequence[int]) -> Vector | None:
    """Return the numbers there; None if one is not finite."""
    numbers = tuple([number for place in places if (number := decimal(row[place])) is not None])
    return numbers if len(numbers) == len(places) else None


def decimal(cell: Cell) -> Decimal | None:
    """Return the number; a NULL (the sum of nothing) is zero, None if it is not finite."""
    value = Decimal(cell) if cell is not None else Decimal(0)
    return value if value.is_finite() else None


def only_rounding(mark: Mark, case: Case) -> bool:
    """Return whether it is a total that differs from the expected one only in float cells, and by no more than rounding
    does."""
    if mark.kind is not Kind.WRONG_AGGREGATE:
        return False
    return all(map(partial(_rounded_row, case, mark.key), mark.expected, mark.found))


def alike(case: Case, key: Key, one: Iterable[Row], other: Iterable[Row]) -> bool:
    """Return whether they are the same rows of a key, in any order, up to how sums of floating point numbers round."""
    left = list(other)
    for row in one:
        found = next((at for at, each in enumerate(left) if _rounded_row(case, key, row, each)), None)
        if found is None:
            return False
        del left[found]
    return not left


def _rounded_row(case: Case, key: Key, expected: Row, found: Row) -> bool:
    sizes = case.sizes.get(key) or repeat(0.0)
    return all(map(_rounded, expected, found, case.rounds, sizes))


def _rounded(one: Cell, other: Cell, rounds: bool, size: float) -> bool:
    return one == other or (rounds and _close(one, other, size))


def _close(one: Cell, other: Cell, size: float) -> bool:
    if one is None or other is None:
        return False
    return math.isclose(float(one), float(other), rel_tol=ROUNDING, abs_tol=ROUNDING * size)
