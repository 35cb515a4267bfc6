"""The checker of one sink: the rows that the ledger calls for and the rows that are there, as two multisets.

Whole rows, both directions, exact cells. What is equal cancels out; what is left is named key by key:

    deficit     an expected row that is there fewer times than expected
    surplus     an expected row that is there more times than expected
    alien       a row that was never expected

    alien of a key never expected                   -> unexpected
    deficit and alien of one key, paired            -> corrupted (wrong aggregate where `expected` aggregates)
    surplus, and alien with no deficit to pair with -> duplicated (an alien says: with a different payload)
    deficit with no alien to pair with              -> lost

One finding for each key and kind, `copies` counting its rows. NULL in a key is a value like any other. Without a
key the whole row is the key, and then nothing can be corrupted: a changed row is one lost and one unexpected.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from operator import eq
from typing import NamedTuple

from harness.checkers.cells import Cell, Row
from harness.scenario import Finding, Kind

Key = tuple[Cell, ...]

ROWS_MAX = 20
"""How many rows a finding shows on each side; `copies` counts them all."""

ZERO = Decimal(0)
PAIRS_MAX = 10_000
"""Above so many possible pairs in one key, rows are paired in their order instead of by likeness."""

ALTERED = "with a different payload"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One sink to judge. `expected` and `found` hold canonical rows of the same `columns` in the same order."""

    sink: str
    columns: tuple[str, ...]
    families: tuple[str, ...]
    key: tuple[str, ...]
    expected: Sequence[Row]
    found: Sequence[Row]
    aggregate: bool = False
    position: int = 0
    """The sink's place in the scenario."""
    sizes: Mapping[Key, Sequence[float]] = field(default_factory=dict)
    """By key, how large the numbers are that went into each column, 0 where that is not known: sums of floating point
    numbers round by a part of that."""
    unrounded: frozenset[int] = frozenset()
    """The places of the columns for which an aggregate adds nothing up."""

    @cached_property
    def rounds(self) -> tuple[bool, ...]:
        """Return, by column, whether its floating point numbers depend on the order in which records were added up."""
        families = enumerate(self.families)
        return tuple(self.aggregate and family == "float" and place not in self.unrounded for place, family in families)

    def key_places(self) -> tuple[int, ...]:
        """Return where the key's columns are; all columns if no key is named."""
        return tuple(self.columns.index(name) for name in self.key or self.columns)

    def payload_places(self) -> tuple[int, ...]:
        """Return where the columns are that do not belong to the key."""
        return tuple(place for place, name in enumerate(self.columns) if self.key and name not in self.key)


class Mark(NamedTuple):
    """What the comparison says of one key: a finding that has not been put into words."""

    kind: Kind
    key: Key
    expected: Sequence[Row]
    found: Sequence[Row]
    note: str = ""
    altered: int = 0
    """How many rows of a surplus have a payload that was never expected."""

    @property
    def copies(self) -> int:
        """Rows that are missing, or too many, or wrong."""
        return len(self.expected) if self.kind is Kind.LOST else len(self.found)


@dataclass(slots=True)
class Difference:
    """What is left of one key when equal rows have cancelled out. `expected`: all its expected rows, once each."""

    expected: list[Row] = field(default_factory=list)
    deficits: list[Row] = field(default_factory=list)
    surplus: list[Row] = field(default_factory=list)
    aliens: list[Row] = field(default_factory=list)


def key_of(row: Row, places: Sequence[int]) -> Key:
    """Return the cells of `row` that name it."""
    return tuple([row[place] for place in places])


def differences(case: Case) -> dict[Key, Difference]:
    """Return by key, what does not cancel out; empty if the sink is exactly right."""
    places = case.key_places()
    expected = Counter(case.expected)
    deltas = expected.copy()
    deltas.subtract(case.found)
    out: dict[Key, Difference] = defaultdict(Difference)
    for row, delta in deltas.items():
        if delta > 0:
            out[key_of(row, places)].deficits += [row] * delta
        elif delta < 0:
            difference = out[key_of(row, places)]
            (difference.surplus if row in expected else difference.aliens).extend([row] * -delta)
    if out:
        for row in expected:
            key = key_of(row, places)
            if key in out:
                out[key].expected.append(row)
    return dict(out)


def compare(case: Case) -> Iterator[Mark]:
    """Yield every mark of one sink, sorted by key; none if the sink is exactly right."""
    different = differences(case)
    families = [case.families[place] for place in case.key_places()]
    for key in sorted(different, key=lambda key: _rank(key, families)):
        yield from judge_key(key, different[key], aggregate=case.aggregate)


def finding(case: Case, mark: Mark) -> Finding:
    """Return a mark in words: cells by column, as many rows as a reader can bear."""
    return Finding(
        kind=mark.kind,
        sink=case.sink,
        key=by_column(case.key or case.columns, mark.key),
        expected=tuple(by_column(case.columns, row) for row in mark.expected[:ROWS_MAX]),
        found=tuple(by_column(case.columns, row) for row in mark.found[:ROWS_MAX]),
        copies=mark.copies,
        note=mark.note,
        position=case.position,
        altered=mark.altered > 0,
    )


def by_column(columns: Sequence[str], row: Row) -> dict[str, Cell]:
    """Return cells by column. Raises ValueError if there are more of one than of the other."""
    return dict(zip(columns, row, strict=True))


def _rank(key: Key, families: Sequence[str]) -> tuple[tuple[int, Decimal, str], ...]:
    """Sorts keys as a reader would: numbers by value, NULL last."""
    return tuple(map(_cell_rank, key, families))


def _cell_rank(cell: Cell, family: str) -> tuple[int, Decimal, str]:
    if cell is None:
        return 2, ZERO, ""
    if family == "number" and (number := Decimal(cell)).is_finite():
        return 0, number, ""
    return 1, ZERO, cell


def judge_key(key: Key, difference: Difference, *, aggregate: bool) -> Iterator[Mark]:
    """Yield the marks of one key, at most one of each kind."""
    if not difference.expected:
        yield Mark(Kind.UNEXPECTED, key, [], difference.aliens)
        return
    pairs, lost, extra = _paired(difference.deficits, difference.aliens)
    if pairs:
        kind = Kind.WRONG_AGGREGATE if aggregate else Kind.CORRUPTED
        yield Mark(kind, key, [e for e, _ in pairs], [f for _, f in pairs])
    if difference.surplus or extra:
        wanted = sorted(set(difference.surplus), key=_sortable) or difference.expected
        # Altered copies first: they must not fall to the limit on shown rows.
        copies = [*extra, *difference.surplus]
        note = f"{len(extra)} of {len(copies)} {ALTERED}" if extra else ""
        yield Mark(Kind.DUPLICATED, key, wanted, copies, note, len(extra))
    if lost:
        yield Mark(Kind.LOST, key, lost, [])


def _paired(deficits: list[Row], aliens: list[Row]) -> tuple[list[tuple[Row, Row]], list[Row], list[Row]]:
    """Deficits with the aliens that took their place (the likest first), deficits left, aliens left."""
    if not deficits or not aliens:
        return [], deficits, aliens
    left, right = sorted(deficits, key=_sortable), sorted(aliens, key=_sortable)
    if len(left) * len(right) > PAIRS_MAX:
        pairs = [(left[place], right[place]) for place in range(min(len(left), len(right)))]
        return pairs, left[len(pairs) :], right[len(pairs) :]
    order = sorted(
        ((i, j) for i in range(len(left)) for j in range(len(right))),
        key=lambda pair: (-_likeness(left[pair[0]], right[pair[1]]), pair),
    )
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for i, j in order:
        if i not in partner and j not in taken:
            partner[i] = j
            taken.add(j)
    pairs = [(left[i], right[j]) for i, j in sorted(partner.items())]
    lost = [row for i, row in enumerate(left) if i not in partner]
    return pairs, lost, [row for j, row in enumerate(right) if j not in taken]


def _likeness(one: Row, other: Row) -> int:
    return sum(map(eq, one, other))


def _sortable(row: Row) -> tuple[tuple[bool, str], ...]:
    return tuple((cell is not None, cell or "") for cell in row)
