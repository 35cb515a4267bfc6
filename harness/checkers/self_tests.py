"""Self-tests: whether the comparison, on this run's own rows, finds what it has to find.

Four copies of the sink's rows have one fault planted in each: a row lost, a row doubled, a low bit flipped, two
payloads swapped. The same `compare` has to find exactly that fault at exactly that key, and nothing else new or gone.

Faults are planted in rows that are right. In three cases the rows of the wrong keys are first set right: fewer than two
keys are right, the only key is wrong, or more keys are wrong than `BAD_MAX`.

Where nothing can be swapped (no payload columns, or all payloads alike), one row overwrites another instead: one lost
and one doubled at once, which no count sees either. Where every payload cell is NULL or there is none, the bit is
flipped in the key: one lost and one unexpected. Where each such key is there already (numbers without a gap), the
greatest key is raised by one.

A sink of one key (a grand total) has no other to swap with: two of its payload cells of one family change places.
Without two, the leading digit of one cell changes, the last cell that a flip would choose. Without any expected row
there is nothing to plant in, and all four are missed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal, localcontext
from itertools import combinations, islice

from harness.checkers.cells import Cell, Row, canonical
from harness.checkers.compare import Case, Key, Mark, compare, key_of
from harness.scenario import Kind

LOST, DOUBLED, FLIPPED, SWAPPED = "lost row", "doubled row", "flipped bit", "swapped payloads"
NAMES = (LOST, DOUBLED, FLIPPED, SWAPPED)

TRIES_MAX = 1000
"""So many rows are searched for one that a fault can be planted in."""

BAD_MAX = 1000
PLAIN = re.compile(r"-?\d+(\.\d+)?")
"""A number as it is written out."""
DIGITS = frozenset({"number", "timestamp", "instant", "date", "time"})
"""Families whose lowest digit is flipped; in the others, the last character is."""

Judge = Callable[[Case], Iterable[Mark]]
Change = Callable[[Cell, str], Cell]
"""Another cell of the same family, or None."""
Signature = Counter[tuple[Kind, Key, int]]
"""Marks by kind, key and copies."""


@dataclass(frozen=True)
class SelfTest:
    """What became of one planted fault; `why` is empty if it was found."""

    name: str
    why: str = ""

    @property
    def found(self) -> bool:
        return not self.why


@dataclass(frozen=True)
class Plant:
    """A copy of the rows with one fault, and the findings it must cause."""

    found: Sequence[Row]
    must: Signature


def self_tests(case: Case, *, bad: Collection[Key], judge: Judge = compare) -> tuple[SelfTest, ...]:
    """Plant the four faults in `case`, one at a time. `bad` are the keys that it has marks for already; `judge` is
    the comparison under trial."""
    base, rows = _ground(case, bad)
    if not rows:
        return tuple(SelfTest(name, f"no row of {case.sink} to plant in") for name in NAMES)
    before = _signature(judge(base))
    planters = {LOST: _lose, DOUBLED: _double, FLIPPED: _flip, SWAPPED: _swap}
    return tuple(_trial(name, plant(base, rows), judge, base=base, before=before) for name, plant in planters.items())


def _trial(name: str, plant: Plant | None, judge: Judge, *, base: Case, before: Signature) -> SelfTest:
    if plant is None:
        return SelfTest(name, "no row that it could be planted in")
    after = _signature(judge(replace(base, found=plant.found)))
    new, gone = after - before, before - after
    if new == plant.must and not gone:
        return SelfTest(name)
    return SelfTest(name, f"planted, and the comparison saw {sum(new.values())} new marks, {sum(gone.values())} less")


def _signature(marks: Iterable[Mark]) -> Signature:
    return Counter((mark.kind, mark.key, mark.copies) for mark in marks)


def _ground(case: Case, bad: Collection[Key]) -> tuple[Case, list[Row]]:
    """Return a case, and the rows in it that are fine."""
    places = case.key_places()
    fine = [row for row in case.found if key_of(row, places) not in bad]
    if len(bad) <= BAD_MAX and _keys(fine, places) >= _keys(case.expected, places):
        return case, fine
    right = list(case.expected)
    return replace(case, found=right), right


def _keys(rows: Iterable[Row], places: Sequence[int]) -> int:
    """Return how many keys the first rows have, as far as it matters: none, one, or two."""
    return min(2, len({key_of(row, places) for row in islice(rows, TRIES_MAX)}))


def _must(case: Case, *findings: tuple[Kind, Row]) -> Signature:
    places = case.key_places()
    return Counter((kind, key_of(row, places), 1) for kind, row in findings)


def _changed(case: Case) -> Kind:
    return Kind.WRONG_AGGREGATE if case.aggregate else Kind.CORRUPTED


def _without(rows: Sequence[Row], row: Row) -> list[Row]:
    copy = list(rows)
    copy.remove(row)
    return copy


def _lose(case: Case, rows: list[Row]) -> Plant:
    # The last one: a checker that stops early misses just that.
    return Plant(_without(case.found, rows[-1]), _must(case, (Kind.LOST, rows[-1])))


def _double(case: Case, rows: list[Row]) -> Plant:
    return Plant([*case.found, rows[0]], _must(case, (Kind.DUPLICATED, rows[0])))


def _flip(case: Case, rows: list[Row]) -> Plant | None:
    middle = len(rows) // 2
    return _altered(case, rows[middle:] + rows[:middle], flipped, _payload(case)) or _raise(case, rows)


def _raise(case: Case, rows: list[Row]) -> Plant | None:
    """The greatest cell of a key becomes one that is greater than all of them, and so not there."""
    for place in case.key_places():
        family = case.families[place]
        row, last = (_greatest(each, place, family) for each in (rows, [*case.expected, *case.found]))
        if other := _changed_row(row, place, raised(last[place], family)):
            return Plant([*_without(case.found, row), other], _must(case, (Kind.LOST, row), (Kind.UNEXPECTED, other)))
    return None


def _greatest(rows: Sequence[Row], place: int, family: str) -> Row:
    """Return the row with the greatest number there, or else with the longest text."""

    def size(row: Row) -> Decimal:
        cell = row[place] or ""
        if family != "number":
            return Decimal(len(cell))
        return Decimal(cell) if PLAIN.fullmatch(cell) else Decimal("-Infinity")

    return max(rows, key=size)


def _payload(case: Case) -> list[int]:
    # Numbers first: theirs are the low bits that a comparison through floats loses.
    return sorted(case.payload_places(), key=lambda place: case.families[place] != "number")


def _altered(case: Case, rows: list[Row], change: Change, payload: Sequence[int]) -> Plant | None:
    """Return one cell of one row changed: of the payload, or else of the key."""
    expected, places = set(case.expected), case.key_places()
    keys = {key_of(row, places) for row in (*case.expected, *case.found)}
    for row in islice(rows, TRIES_MAX):
        for place in (*payload, *places):
            other = _changed_row(row, place, change(row[place], case.families[place]))
            if other is None or other in expected:
                continue
            copy = [*_without(case.found, row), other]
            if place not in places:
                return Plant(copy, _must(case, (_changed(case), row)))
            if key_of(other, places) not in keys:
                return Plant(copy, _must(case, (Kind.LOST, row), (Kind.UNEXPECTED, other)))
    return None


def _swap(case: Case, rows: list[Row]) -> Plant | None:
    expected, places, payload = set(case.expected), case.key_places(), case.payload_places()
    one = rows[0]
    others = [row for row in rows[:TRIES_MAX] if key_of(row, places) != key_of(one, places)]
    if not others:
        return _swap_within(case, rows) or _altered(case, rows, led, _payload(case)[::-1])
    for other in reversed(others):
        crossed = _crossed(one, other, payload)
        if not expected & set(crossed):
            copy = [*_without(_without(case.found, one), other), *crossed]
            return Plant(copy, _must(case, (_changed(case), one), (_changed(case), other)))
    copy = [*_without(case.found, one), others[-1]]
    return Plant(copy, _must(case, (Kind.LOST, one), (Kind.DUPLICATED, others[-1])))


def _swap_within(case: Case, rows: list[Row]) -> Plant | None:
    """Two payload cells of one family change places."""
    expected = set(case.expected)
    for row in rows[:TRIES_MAX]:
        for one, two in combinations(case.payload_places(), 2):
            cells = list(row)
            cells[one], cells[two] = row[two], row[one]
            if case.families[one] == case.families[two] and tuple(cells) not in expected:
                return Plant([*_without(case.found, row), tuple(cells)], _must(case, (_changed(case), row)))
    return None


def _crossed(one: Row, other: Row, payload: Sequence[int]) -> tuple[Row, Row]:
    """Return the two rows with the cells at `payload` exchanged."""
    places = range(len(one))
    return (
        tuple([other[i] if i in payload else one[i] for i in places]),
        tuple([one[i] if i in payload else other[i] for i in places]),
    )


def _changed_row(row: Row, place: int, cell: Cell) -> Row | None:
    return None if cell is None else (*row[:place], cell, *row[place + 1 :])


def flipped(cell: Cell, family: str) -> Cell:
    """Return the nearest other cell of the same family: the lowest digit, bit or character changed. None if there is
    none."""
    if not cell:
        return None
    if family == "bool":
        return "false" if cell == "true" else "true"
    if family == "float" and math.isfinite(float(cell)):
        return canonical(math.nextafter(float(cell), math.inf), family)
    if family == "number" and not cell[-1].isdigit():
        return "0"
    digits = [place for place, letter in enumerate(cell) if letter.isdigit()] if family in DIGITS else []
    last = digits[-1] if digits else len(cell) - 1
    changed = cell[:last] + _next(cell[last]) + cell[last + 1 :]
    return canonical(changed, family) if family == "number" else changed


def raised(cell: Cell, family: str) -> Cell:
    """Return the next whole number, or a longer text. None if there is none."""
    if not cell or family == "bool" or (family == "number" and not PLAIN.fullmatch(cell)):
        return None
    if family != "number":
        return cell + _next(cell[-1])
    with localcontext(prec=len(cell) + 1):
        return canonical(Decimal(cell).to_integral_value(ROUND_FLOOR) + 1, family)


def led(cell: Cell, family: str) -> Cell:
    """Another cell, whose first digit, or else first character, is another: never what `flipped` gives, but for a bool.
    None if there is none."""
    if not cell or family == "bool":
        return flipped(cell, family)
    first = next((place for place, letter in enumerate(cell) if letter.isdecimal()), 0)
    letter = cell[first]
    other = str((int(letter) + 3) % 10) if letter.isdecimal() else chr(ord(letter) ^ 2)
    changed = cell[:first] + other + cell[first + 1 :]
    return canonical(changed, family) if family == "number" and letter.isdecimal() else changed


def _next(letter: str) -> str:
    """The letter with its lowest bit flipped: `0` and `1`, `b` and `c`."""
    return chr(ord(letter) ^ 1)
