"""The checker of order: rows that share `per` show `follows` rising when they are sorted by the sink's column `by`.

Only the first appearance of each value of `follows` counts: a replayed batch is duplicated, and is not named a
second time as misordered. Rows that tie in `by` have no order among themselves. Rows with a NULL in `by` or
`follows` cannot be placed; `placed` says how many rows could, so that an empty check is not green.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from harness.checkers.cells import ENDLESS, Cell, Row
from harness.checkers.compare import ROWS_MAX, by_column
from harness.scenario import Finding, Kind, Order

Sortable = tuple[Decimal, str]

DAYS = ("date", "timestamp", "instant")
_DAY = re.compile(r"([+-]?\d+)(-.*?)Z?( BC)?", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class OrderCase:
    """The rows of one sink with all its columns, and the order claimed of them. Raises ValueError for columns
    that are not there."""

    sink: str
    columns: tuple[str, ...]
    families: tuple[str, ...]
    order: Order
    found: Sequence[Row]
    position: int = 0

    def __post_init__(self) -> None:
        missing = [name for name in (self.order.by, self.order.follows, *self.order.per) if name not in self.columns]
        if missing:
            raise ValueError(f"{self.sink} has no column {', '.join(missing)}; it has {', '.join(self.columns)}")


def placed(case: OrderCase) -> int:
    """Return how many rows have a place in an order of two rows or more."""
    return sum(len(rows) for rows in _groups(case).values() if len(rows) > 1)


def misordered(case: OrderCase) -> Iterator[Finding]:
    """Yield one finding for each `per` whose rows are out of order; `copies` counts the rows that came too late."""
    for per, rows in _groups(case).items():
        late = list(_late(rows))
        if late:
            shown = [row for pair in late for row in pair][:ROWS_MAX]
            yield Finding(
                kind=Kind.MISORDERED,
                sink=case.sink,
                key=by_column(case.order.per, per),
                found=tuple(by_column(case.columns, row) for row in shown),
                copies=len(late),
                note=f"{case.order.follows} falls when sorted by {case.order.by}",
                position=case.position,
            )


Placed = tuple[Sortable, Sortable, Row]


def _groups(case: OrderCase) -> dict[tuple[Cell, ...], list[Placed]]:
    by, follows = case.columns.index(case.order.by), case.columns.index(case.order.follows)
    per = [case.columns.index(name) for name in case.order.per]
    groups: dict[tuple[Cell, ...], list[Placed]] = defaultdict(list)
    for row in case.found:
        at, value = sortable(row[by], case.families[by]), sortable(row[follows], case.families[follows])
        if at is not None and value is not None:
            groups[tuple([row[place] for place in per])].append((at, value, row))
    return groups


def _late(rows: list[Placed]) -> Iterator[tuple[Row, Row]]:
    """Pairs (the row that ran ahead, the row that came too late)."""
    seen: set[Sortable] = set()
    ahead: list[Placed] = []
    for _, tied in groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0]):
        fresh = [row for row in tied if row[1] not in seen]
        yield from ((first[2], row[2]) for first in ahead for row in fresh if row[1] < first[1])
        seen.update(row[1] for row in fresh)
        # At most one: the row with the highest value so far.
        ahead = sorted([*ahead, *fresh], key=lambda row: row[1])[-1:]


def sortable(cell: Cell, family: str) -> Sortable | None:
    """Return a cell as something that sorts as its value does; None for NULL and NaN."""
    if cell is None or cell.lower() == "nan":
        return None
    if family in ("number", "float") or (family in DAYS and cell in ENDLESS):
        return Decimal(cell), ""
    # A year may have more than four digits, and the zone's letter would sort behind a further digit of the second.
    day = _DAY.fullmatch(cell) if family in DAYS else None
    return (Decimal(0), cell) if day is None else (Decimal(1 - int(day[1]) if day[3] else day[1]), day[2])
