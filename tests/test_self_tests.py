"""Self-tests: a comparison that is blind to something must be caught on any data; a good one never."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.checkers.cells import Row, canonical
from harness.checkers.compare import Case, Mark, compare
from harness.checkers.self_tests import (
    BAD_MAX,
    DOUBLED,
    FLIPPED,
    LOST,
    NAMES,
    SWAPPED,
    flipped,
    led,
    raised,
    self_tests,
)
from harness.scenario import Kind
from tests.laws import FAULTS, case, good_rows
from tests.limits import examples

Judge = Callable[[Case], Iterable[Mark]]
GOOD = good_rows(30)


def missed(of: Case, judge: Judge = compare) -> set[str]:
    bad = {mark.key for mark in compare(of)}
    out = self_tests(of, bad=bad, judge=judge)
    assert [self_test.name for self_test in out] == list(NAMES)
    return {self_test.name for self_test in out if not self_test.found}


def whys(of: Case, judge: Judge = compare) -> list[str]:
    return [self_test.why for self_test in self_tests(of, bad={mark.key for mark in compare(of)}, judge=judge)]


@settings(max_examples=examples(100))
@given(st.integers(2, 40), st.integers(0, 2**32), st.booleans())
def test_a_good_comparison_finds_all_four_in_clean_data(count: int, seed: int, aggregate: bool) -> None:
    rows = good_rows(count, seed)
    assert missed(case(rows, rows[::-1], aggregate=aggregate)) == set()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("key", [("id",), ("account",), ()])
def test_a_good_comparison_finds_all_four_in_violated_data(fault: str, key: tuple[str, ...]) -> None:
    found, _ = FAULTS[fault](GOOD, Random(3))
    assert missed(case(GOOD, found, key=key)) == set()


def test_where_every_row_is_wrong_rows_are_set_right_first() -> None:
    assert missed(case(GOOD, GOOD + GOOD)) == set()
    assert missed(case(GOOD, [(row[0], "x", "y") for row in GOOD])) == set()
    assert missed(case(GOOD, [("-5", "x", "y")])) == set()


def test_one_fine_key_is_too_few_and_the_others_are_set_right() -> None:
    assert missed(case(GOOD, [*GOOD, *GOOD[1:]])) == set()
    assert missed(case(GOOD[:2], GOOD[:1])) == set()


def test_a_flipped_number_is_planted_in_canonical_form() -> None:
    rows: list[Row] = [(str(i), "a", f"{i}.1") for i in range(4)]
    planted: list[Row] = []

    def judge(of: Case) -> Iterable[Mark]:
        planted.extend(row for row in of.found if row not in rows and row[1] == "a" and str(row[2]) in "0123")
        return compare(of)

    assert missed(case(rows, rows), judge) == set()
    assert planted == [("2", "a", "2")]


def test_beyond_so_many_wrong_keys_the_sink_is_set_right_first() -> None:
    rows = good_rows(BAD_MAX + 10)
    judged: list[int] = []

    def judge(of: Case) -> Iterable[Mark]:
        judged.append(len(of.found))
        return compare(of)

    assert missed(case(rows, rows[:9]), judge) == set()
    assert judged == [len(rows), len(rows) - 1, len(rows) + 1, len(rows), len(rows)]
    judged.clear()
    assert missed(case(rows, rows[:10]), judge) == set()
    assert judged[0] == 10


def _as_set(of: Case) -> Iterable[Mark]:
    return compare(replace(of, expected=sorted(set(of.expected)), found=sorted(set(of.found))))


def _one_way(of: Case) -> Iterable[Mark]:
    return [mark for mark in compare(of) if mark.kind is not Kind.DUPLICATED]


def _ids_only(of: Case) -> Iterable[Mark]:
    return compare(
        replace(of, expected=[(r[0], "", "") for r in of.expected], found=[(r[0], "", "") for r in of.found])
    )


def _count_only(of: Case) -> Iterable[Mark]:
    return compare(of) if len(of.expected) != len(of.found) else []


def _column_sums(of: Case) -> Iterable[Mark]:
    sums = [[Counter(column) for column in zip(*rows, strict=True)] for rows in (of.expected, of.found)]
    return compare(of) if sums[0] != sums[1] else []


def _no_tail(of: Case) -> Iterable[Mark]:
    return compare(replace(of, expected=[row for row in of.expected if row in of.found]))


def _floats(of: Case) -> Iterable[Mark]:
    def rough(row: Row) -> Row:
        return (row[0], row[1], f"{float(row[2] or 0):.3g}")

    return compare(replace(of, expected=list(map(rough, of.expected)), found=list(map(rough, of.found))))


def _wrong_key(of: Case) -> Iterable[Mark]:
    return [mark._replace(key=("0",)) for mark in compare(of)]


def _wrong_kind(of: Case) -> Iterable[Mark]:
    return [mark._replace(kind=Kind.UNEXPECTED) for mark in compare(of)]


def _blind(of: Case) -> Iterable[Mark]:
    return []


def _noisy(of: Case) -> Iterable[Mark]:
    extra = [Mark(Kind.LOST, ("0",), [], [])] if len(of.found) != len(GOOD) else []
    return [*compare(of), *extra]


@pytest.mark.parametrize(
    ("judge", "names"),
    [
        (_as_set, {DOUBLED}),
        (_one_way, {DOUBLED}),
        (_ids_only, {FLIPPED, SWAPPED}),
        (_count_only, {FLIPPED, SWAPPED}),
        (_column_sums, {SWAPPED}),
        (_no_tail, {LOST, FLIPPED, SWAPPED}),
        (_wrong_key, set(NAMES)),
        (_wrong_kind, set(NAMES)),
        (_blind, set(NAMES)),
        (_noisy, {LOST, DOUBLED}),
    ],
)
def test_a_blind_comparison_is_caught(judge: Judge, names: set[str]) -> None:
    assert missed(case(GOOD, GOOD), judge) == names


def test_a_comparison_through_rough_floats_is_caught() -> None:
    rows: list[Row] = [(str(i), "a", str(2**53 + 10 * i)) for i in range(10)]
    assert FLIPPED in missed(case(rows, rows), _floats)


def test_a_comparison_whose_other_findings_come_or_go_is_caught() -> None:
    def fewer(of: Case) -> Iterable[Mark]:
        return [mark for mark in compare(of) if len(of.found) < len(GOOD) or mark.key != (GOOD[0][0],)]

    def more(of: Case) -> Iterable[Mark]:
        return [mark for mark in compare(of) if len(of.found) >= len(GOOD) or mark.key != (GOOD[0][0],)]

    assert missed(case(GOOD, GOOD[1:]), fewer) == {DOUBLED}
    assert missed(case(GOOD, GOOD[1:]), more) == {DOUBLED}
    assert whys(case(GOOD, GOOD[1:]), fewer)[1] == "planted, and the comparison saw 1 new marks, 1 less"


def test_it_says_why() -> None:
    assert whys(case(GOOD, GOOD), _blind)[0] == "planted, and the comparison saw 0 new marks, 0 less"
    assert whys(case(GOOD[:1], GOOD[:1])) == [""] * 4
    assert whys(case([], [])) == ["no row of postgres payments to plant in"] * 4
    assert whys(case([], GOOD[:1])) == ["no row of postgres payments to plant in"] * 4
    assert whys(case(GOOD[:2], GOOD[:2])) == [""] * 4


def test_rows_of_one_key_are_enough() -> None:
    rows: list[Row] = [("1", "a", str(i)) for i in range(5)]
    assert missed(case(rows, rows)) == set()
    assert missed(case(rows, rows, key=("amount",))) == set()


NUMBERS = ("number", "number", "number")
TOTAL: Row = ("1", "400", "98765.25")


def planted_in(of: Case) -> list[set[Row]]:
    """The rows of each plant that the total itself has not; all four must be found."""
    out: list[set[Row]] = []

    def judge(one: Case) -> Iterable[Mark]:
        out.append(set(one.found) - set(of.expected) if len(one.found) else {()})
        return compare(one)

    assert missed(of, judge) == set()
    nothing, lost, doubled, flip, other = out
    assert (nothing, lost, doubled) == (set(), {()}, set())
    return [flip, other]


@pytest.mark.parametrize("aggregate", [False, True])
def test_the_cells_of_a_grand_total_change_places_where_their_families_are_one(aggregate: bool) -> None:
    flip, other = planted_in(case([TOTAL], [TOTAL], families=NUMBERS, aggregate=aggregate))
    assert flip == {("1", "401", "98765.25")}
    assert other == {("1", "98765.25", "400")}


def test_else_the_leading_digit_of_another_cell_is_another() -> None:
    flip, other = planted_in(case([TOTAL], [TOTAL], families=("number", "number", "float")))
    assert flip == {("1", "401", "98765.25")}
    assert other == {("1", "400", "28765.25")}
    alike: Row = ("1", "40", "40")
    assert planted_in(case([alike], [alike], families=NUMBERS))[1] == {("1", "40", "70")}


def test_a_total_without_payload_is_planted_in_by_its_key() -> None:
    flip, other = planted_in(case([TOTAL], [TOTAL], key=("id", "account", "amount"), families=NUMBERS))
    assert flip == {("0", "400", "98765.25")}
    assert other == {("4", "400", "98765.25")}


@pytest.mark.parametrize("found", [("1", "399", "98765.25"), ("2", "400", "98765.25"), None])
def test_a_wrong_total_is_set_right_first(found: Row | None) -> None:
    assert planted_in(case([TOTAL], [TOTAL])) != []
    assert missed(case([TOTAL], [] if found is None else [found])) == set()
    assert missed(case([TOTAL], [TOTAL] if found is None else [TOTAL, found])) == set()


def test_a_total_of_nothing_but_nulls_cannot_be_planted_in() -> None:
    empty: Row = ("1", None, None)
    assert planted_in(case([empty], [empty])) == [{("0", None, None)}, {("4", None, None)}]
    none: Row = (None, None, None)
    assert missed(case([none], [none])) == {FLIPPED, SWAPPED}


@pytest.mark.parametrize(
    ("judge", "names"),
    [
        (_as_set, {DOUBLED}),
        (_one_way, {DOUBLED}),
        (_ids_only, {FLIPPED, SWAPPED}),
        (_count_only, {FLIPPED, SWAPPED}),
        (_wrong_kind, set(NAMES)),
        (_blind, set(NAMES)),
    ],
)
def test_a_comparison_that_is_blind_to_a_total_is_caught(judge: Judge, names: set[str]) -> None:
    assert missed(case([TOTAL], [TOTAL]), judge) == names


def test_a_swap_within_a_total_never_makes_an_expected_row() -> None:
    rows: list[Row] = [("1", "3", "5"), ("1", "5", "3"), ("1", "5", "5")]
    assert missed(case(rows, rows, families=NUMBERS)) == set()


@pytest.mark.parametrize(
    ("cell", "family", "other"),
    [
        ("10", "number", "40"),
        ("7", "number", "0"),
        ("70", "number", "0"),
        ("-7.5", "number", "-0.5"),
        ("NaN", "number", "LaN"),
        ("0.1", "float", "3.1"),
        ("inf", "float", "knf"),
        ("ab", "text", "cb"),
        ("x5y", "text", "x8y"),
        ("\u00b2", "text", "\u00b0"),
        ("true", "bool", "false"),
        ("2026-01-31", "date", "5026-01-31"),
        ("", "text", None),
        (None, "number", None),
    ],
)
def test_leading_digits(cell: str | None, family: str, other: str | None) -> None:
    assert led(cell, family) == other


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_leading_digit_is_no_flip(number: object) -> None:
    cell = canonical(number, "number")
    assert led(cell, "number") not in (cell, flipped(cell, "number"), None)


@given(st.text(min_size=1))
def test_a_leading_character_is_no_flip(text: str) -> None:
    assert led(text, "text") not in (text, flipped(text, "text"), None)


@pytest.mark.parametrize("key", [("id", "account", "amount"), ()])
def test_without_payload_one_row_overwrites_another_and_a_key_is_flipped(key: tuple[str, ...]) -> None:
    planted: list[Counter[Kind]] = []

    def judge(of: Case) -> Iterable[Mark]:
        out = list(compare(of))
        planted.append(Counter(mark.kind for mark in out))
        return out

    assert missed(case(GOOD, GOOD, key=key), judge) == set()
    assert planted == [
        {},
        {Kind.LOST: 1},
        {Kind.DUPLICATED: 1},
        {Kind.LOST: 1, Kind.UNEXPECTED: 1},
        {Kind.LOST: 1, Kind.DUPLICATED: 1},
    ]


@pytest.mark.parametrize("aggregate", [False, True])
def test_what_is_planted(aggregate: bool) -> None:
    planted: list[set[tuple[Kind, str | None]]] = []

    def judge(of: Case) -> Iterable[Mark]:
        out = list(compare(of))
        planted.append({(mark.kind, mark.key[0]) for mark in out})
        return out

    assert missed(case(GOOD, GOOD, aggregate=aggregate), judge) == set()
    wrong = Kind.WRONG_AGGREGATE if aggregate else Kind.CORRUPTED
    assert planted == [
        set(),
        {(Kind.LOST, GOOD[-1][0])},
        {(Kind.DUPLICATED, GOOD[0][0])},
        {(wrong, GOOD[15][0])},
        {(wrong, GOOD[0][0]), (wrong, GOOD[-1][0])},
    ]


def test_equal_payloads_and_null_payloads_can_be_planted_in() -> None:
    alike: list[Row] = [(str(i), "a", "5") for i in range(9)]
    empty: list[Row] = [(str(i), None, None) for i in range(9)]
    assert missed(case(alike, alike)) == set()
    assert missed(case(empty, empty)) == set()


def test_a_flip_never_turns_a_row_into_another_expected_one() -> None:
    rows: list[Row] = [(str(i), "a", str(n)) for i in range(3) for n in range(8)]
    assert missed(case(rows, rows)) == set()


def test_nothing_can_be_flipped_where_all_cells_are_null() -> None:
    rows: list[Row] = [(None, None, None), (None, "", None)]
    assert missed(case(rows, rows, key=())) == {FLIPPED}
    assert "no row that it could be planted in" in whys(case(rows, rows, key=()))


def keys_planted(of: Case) -> set[str | None]:
    """The keys that a plant has and the case has not; all four must be found."""
    out: set[str | None] = set()

    def judge(one: Case) -> Iterable[Mark]:
        out.update({row[0] for row in one.found} - {row[0] for row in of.found})
        return compare(one)

    assert missed(of, judge) == set()
    return out


def test_a_key_is_not_flipped_into_another_key() -> None:
    rows: list[Row] = [("0", None, None), ("1", None, None)]
    assert keys_planted(case(rows, rows)) == {"2"}
    near: list[Row] = [("0", "", None), ("1", None, None)]
    assert keys_planted(case(near, near)) == {"2"}
    far: list[Row] = [("0", None, None), ("5", None, None)]
    assert keys_planted(case(far, [*far, ("1", None, "x"), ("4", None, None)])) == {"6"}
    assert keys_planted(case([rows[0], ("5", None, None)], [rows[0], ("5", None, None)])) == {"4"}


@pytest.mark.parametrize("count", [2000, 2001])
@pytest.mark.parametrize("first", [0, -7, 10**30])
def test_numbers_without_a_gap_and_nothing_beside_them(count: int, first: int) -> None:
    rows: list[Row] = [(str(first + at), None, None) for at in range(count)]
    (planted,) = keys_planted(case(rows, rows))
    assert planted == str(first + count)


def test_texts_of_which_every_neighbour_is_there() -> None:
    rows: list[Row] = [(f"a{at}", None, None) for at in range(10)]
    assert keys_planted(case(rows, rows, families=("text", "text", "number"))) == {"a01"}


def test_of_a_key_of_several_columns_one_is_raised() -> None:
    rows: list[Row] = [(str(one), str(two), None) for one in range(4) for two in range(4)]
    assert keys_planted(case(rows, rows, key=("id", "account"), families=NUMBERS)) == {"4"}


def test_no_key_of_truth_values_is_beyond_both() -> None:
    rows: list[Row] = [("false", None, None), ("true", None, None)]
    assert missed(case(rows, rows, families=("bool", "text", "number"))) == {FLIPPED}


@pytest.mark.parametrize(
    ("cell", "family", "other"),
    [
        ("10", "number", "11"),
        ("-1", "number", "0"),
        ("-0.5", "number", "0"),
        ("2.5", "number", "3"),
        ("9" * 40, "number", f"1{'0' * 40}"),
        ("NaN", "number", None),
        ("1E99999", "number", None),
        ("ab", "text", "abc"),
        ("2026-01-31", "date", "2026-01-310"),
        ("true", "bool", None),
        ("", "text", None),
        (None, "number", None),
    ],
)
def test_raised(cell: str | None, family: str, other: str | None) -> None:
    assert raised(cell, family) == other


@pytest.mark.parametrize(
    ("cell", "family", "other"),
    [
        ("10", "number", "11"),
        ("11", "number", "10"),
        ("-1", "number", "0"),
        ("12.1", "number", "12"),
        ("12.5", "number", "12.4"),
        ("NaN", "number", "0"),
        ("-Infinity", "number", "0"),
        ("ab", "text", "ac"),
        ("b ", "text", "b!"),
        ("5 EUR", "text", "5 EUS"),
        ("true", "bool", "false"),
        ("false", "bool", "true"),
        ("0.1", "float", "0.10000000000000002"),
        ("inf", "float", "ing"),
        ("2026-01-31T10:00:00.000000", "timestamp", "2026-01-31T10:00:00.000001"),
        ("2026-01-31T10:00:00.000000Z", "instant", "2026-01-31T10:00:00.000001Z"),
        ("2026-01-31", "date", "2026-01-30"),
        ("10:00:00.000000", "time", "10:00:00.000001"),
        ("infinity", "date", "infinitx"),
        ("00ff", "bytes", "00fg"),
        ('{"a":1}', "json", '{"a":1|'),
        ("", "text", None),
        (None, "number", None),
    ],
)
def test_flips(cell: str | None, family: str, other: str | None) -> None:
    assert flipped(cell, family) == other


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_flipped_number_is_another_number(number: object) -> None:
    cell = canonical(number, "number")
    assert flipped(cell, "number") not in (cell, None)


@given(st.floats())
def test_a_flipped_float_is_another_float(number: float) -> None:
    cell = canonical(number, "float")
    assert flipped(cell, "float") not in (cell, None)


@given(st.text(min_size=1))
def test_a_flipped_text_is_another_text(text: str) -> None:
    assert flipped(text, "text") not in (text, None)
