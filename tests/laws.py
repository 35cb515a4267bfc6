"""What the tests of the checkers share: rows, cases, a naive oracle, and the fourteen planted faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from hypothesis import strategies as st

from harness.checkers.cells import Cell, Row
from harness.checkers.compare import Case, Key, compare
from harness.scenario import Kind

Signature = Counter[tuple[Kind, Key, int]]

COLUMNS = ("id", "account", "amount")
FAMILIES = ("number", "text", "number")

CELLS = st.sampled_from([None, "", "a", "b", "1"])
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=12)
KEYS = st.sampled_from([("id",), ("id", "account"), ("account",), ()])


def case(
    expected: Sequence[Row],
    found: Sequence[Row],
    *,
    key: tuple[str, ...] = ("id",),
    aggregate: bool = False,
    families: tuple[str, ...] = FAMILIES,
) -> Case:
    """A case over `COLUMNS`."""
    return Case(
        sink="postgres payments",
        columns=COLUMNS,
        families=families,
        key=key,
        expected=expected,
        found=found,
        aggregate=aggregate,
    )


def marks(of: Case) -> Signature:
    """What the comparison says, to be compared."""
    return Counter((mark.kind, mark.key, mark.copies) for mark in compare(of))


def oracle(of: Case) -> Signature:
    """The same comparison written the slow and obvious way: key by key, striking row after row off a list."""
    places = [of.columns.index(name) for name in of.key or of.columns]

    def key(row: Row) -> tuple[Cell, ...]:
        return tuple(row[place] for place in places)

    out: Signature = Counter()
    for one in {key(row) for row in [*of.expected, *of.found]}:
        wanted = [row for row in of.expected if key(row) == one]
        there = [row for row in of.found if key(row) == one]
        if not wanted:
            out[(Kind.UNEXPECTED, one, len(there))] = 1
            continue
        missing = []
        for row in wanted:
            if row in there:
                there.remove(row)
            else:
                missing.append(row)
        strange = sum(row not in wanted for row in there)
        wrong = min(len(missing), strange)
        counts = {
            Kind.WRONG_AGGREGATE if of.aggregate else Kind.CORRUPTED: wrong,
            Kind.LOST: len(missing) - wrong,
            Kind.DUPLICATED: len(there) - wrong,
        }
        out.update({(kind, one, copies): 1 for kind, copies in counts.items() if copies})
    return out


def good_rows(count: int, seed: int = 0) -> list[Row]:
    """Rows with ids of their own; the payloads are all different too."""
    rng = Random(seed)
    return [
        (str(2**53 + i), f"Account {rng.randrange(50)}", f"{i}.{rng.randrange(9)}{rng.randrange(1, 9)}")
        for i in range(count)
    ]


Planted = tuple[list[Row], Signature]
Planter = Callable[[list[Row], Random], Planted]


def _sig(*findings: tuple[Kind, Row, int]) -> Signature:
    return Counter({(kind, (row[0],), copies): 1 for kind, row, copies in findings})


def _changed(rows: list[Row], rng: Random, change: Callable[[Row], Row]) -> Planted:
    at = rng.randrange(len(rows))
    return [*rows[:at], change(rows[at]), *rows[at + 1 :]], _sig((Kind.CORRUPTED, rows[at], 1))


def _lose(rows: list[Row], rng: Random) -> Planted:
    at = rng.randrange(len(rows))
    return rows[:at] + rows[at + 1 :], _sig((Kind.LOST, rows[at], 1))


def _lose_last(rows: list[Row], rng: Random) -> Planted:
    return rows[:-1], _sig((Kind.LOST, rows[-1], 1))


def _dup(rows: list[Row], rng: Random) -> Planted:
    one = rng.choice(rows)
    return [*rows, one], _sig((Kind.DUPLICATED, one, 1))


def _thrice(rows: list[Row], rng: Random) -> Planted:
    one = rng.choice(rows)
    return [*rows, one, one], _sig((Kind.DUPLICATED, one, 2))


def _lose_and_dup(rows: list[Row], rng: Random) -> Planted:
    one, other = rng.sample(rows, 2)
    return [row for row in rows if row != one] + [other], _sig((Kind.LOST, one, 1), (Kind.DUPLICATED, other, 1))


def _low_bit(rows: list[Row], rng: Random) -> Planted:
    return _changed(rows, rng, lambda row: (row[0], row[1], f"{row[2]}1"))


def _swap(rows: list[Row], rng: Random) -> Planted:
    one = rng.choice(rows)
    other = rng.choice([row for row in rows if row[1:] != one[1:]])
    rest = [row for row in rows if row not in (one, other)]
    crossed = [(one[0], *other[1:]), (other[0], *one[1:])]
    return rest + crossed, _sig((Kind.CORRUPTED, one, 1), (Kind.CORRUPTED, other, 1))


def _altered_copy(rows: list[Row], rng: Random) -> Planted:
    one = rng.choice(rows)
    return [*rows, (one[0], one[1], "-1")], _sig((Kind.DUPLICATED, one, 1))


def _null(rows: list[Row], rng: Random) -> Planted:
    return _changed(rows, rng, lambda row: (row[0], None, row[2]))


def _blank(rows: list[Row], rng: Random) -> Planted:
    return _changed(rows, rng, lambda row: (row[0], f"{row[1]} ", row[2]))


def _case(rows: list[Row], rng: Random) -> Planted:
    return _changed(rows, rng, lambda row: (row[0], str(row[1]).lower(), row[2]))


def _phantom(rows: list[Row], rng: Random) -> Planted:
    ghost = ("-1", "Account 1", "5")
    return [*rows, ghost], _sig((Kind.UNEXPECTED, ghost, 1))


def _batch_twice(rows: list[Row], rng: Random) -> Planted:
    start = rng.randrange(len(rows))
    batch = rows[start : start + max(1, len(rows) // 10)]
    return rows + batch, _sig(*((Kind.DUPLICATED, row, 1) for row in batch))


def _empty(rows: list[Row], rng: Random) -> Planted:
    return [], _sig(*((Kind.LOST, row, 1) for row in rows))


FAULTS: dict[str, Planter] = {
    "lose": _lose,
    "lose the last": _lose_last,
    "duplicate": _dup,
    "three copies": _thrice,
    "lose one and duplicate another": _lose_and_dup,
    "low-bit flip": _low_bit,
    "swap payloads of two ids": _swap,
    "duplicate with a corrupted copy": _altered_copy,
    "null": _null,
    "trailing blank": _blank,
    "case": _case,
    "phantom id": _phantom,
    "whole batch twice": _batch_twice,
    "empty sink": _empty,
}
"""The fourteen faults that a comparison has to find: the rows with one planted, and the findings that must come."""
