"""The checker of one sink: any ledger, any planted anomaly: exactly that finding; none planted: none."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.checkers.cells import Row
from harness.checkers.compare import ALTERED, PAIRS_MAX, ROWS_MAX, Mark, by_column, compare, finding
from harness.scenario import Finding, Kind
from tests.laws import FAULTS, KEYS, ROWS, case, good_rows, marks, oracle
from tests.limits import examples

A: Row = ("1", "a", "5")
B: Row = ("2", "b", "6")
TEXTS = ("text", "text", "text")


@settings(max_examples=examples(1000))
@given(ROWS, ROWS, KEYS, st.booleans())
@example([A, A], [A, ("1", "a", "7")], ("id",), False)
def test_agrees_with_the_naive_oracle(expected: list[Row], found: list[Row], key: tuple[str, ...], agg: bool) -> None:
    one = case(expected, found, key=key, aggregate=agg, families=TEXTS)
    assert marks(one) == oracle(one)


@settings(max_examples=examples(1000))
@given(ROWS, st.integers(0, 2**32), KEYS)
def test_agrees_with_the_oracle_on_a_mutated_copy(expected: list[Row], seed: int, key: tuple[str, ...]) -> None:
    rng = Random(seed)
    found = [row for row in expected for _ in range(rng.choice([1, 1, 1, 0, 2]))]
    found = [(*row[:2], rng.choice([row[2], "x"])) for row in found]
    rng.shuffle(found)
    one = case(expected, found, key=key, families=TEXTS)
    assert marks(one) == oracle(one)


@given(ROWS, st.randoms(use_true_random=False), KEYS)
def test_nothing_planted_nothing_found(rows: list[Row], rng: Random, key: tuple[str, ...]) -> None:
    shuffled = list(rows)
    rng.shuffle(shuffled)
    assert marks(case(rows, shuffled, key=key)) == Counter()


@pytest.mark.parametrize("fault", FAULTS)
@given(count=st.integers(3, 60), seed=st.integers(0, 2**32))
@settings(max_examples=examples(200))
def test_each_planted_fault_is_found_located_and_classified(fault: str, count: int, seed: int) -> None:
    rows, rng = good_rows(count, seed), Random(seed)
    found, must = FAULTS[fault](rows, rng)
    rng.shuffle(found)
    assert marks(case(rows, found)) == must


@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_found_in_2000_rows(fault: str) -> None:
    rows = good_rows(2000)
    found, must = FAULTS[fault](rows, Random(1))
    assert marks(case(rows, found)) == must


def test_two_faults_are_two_findings() -> None:
    rows = good_rows(20)
    assert marks(case(rows, [*rows[1:], rows[5]])) == Counter(
        {(Kind.LOST, (rows[0][0],), 1): 1, (Kind.DUPLICATED, (rows[5][0],), 1): 1}
    )


@pytest.mark.parametrize(
    ("expected", "found", "kinds"),
    [
        ([A], [A], {}),
        ([A], [], {Kind.LOST: 1}),
        ([A, A, A], [A], {Kind.LOST: 2}),
        ([A], [A, A, A], {Kind.DUPLICATED: 2}),
        ([], [A, A], {Kind.UNEXPECTED: 2}),
        ([A], [("1", "a", "4")], {Kind.CORRUPTED: 1}),
        ([A], [A, ("1", "a", "4")], {Kind.DUPLICATED: 1}),
        ([A], [("1", "a", "4"), ("1", "a", "3")], {Kind.CORRUPTED: 1, Kind.DUPLICATED: 1}),
        ([A, ("1", "b", "5")], [("1", "x", "x")], {Kind.CORRUPTED: 1, Kind.LOST: 1}),
        ([A, ("1", "b", "5")], [A, A], {Kind.LOST: 1, Kind.DUPLICATED: 1}),
        ([A, ("1", "b", "5")], [A, A, ("1", "c", "5")], {Kind.CORRUPTED: 1, Kind.DUPLICATED: 1}),
        ([(None, "a", "5")], [], {Kind.LOST: 1}),
        ([(None, "a", "5")], [(None, "a", "5"), (None, "a", "5")], {Kind.DUPLICATED: 1}),
        ([(None, "a", "5")], [("0", "a", "5")], {Kind.LOST: 1, Kind.UNEXPECTED: 1}),
        ([("1", None, "5")], [("1", "", "5")], {Kind.CORRUPTED: 1}),
    ],
)
def test_histories_by_hand(expected: list[Row], found: list[Row], kinds: dict[Kind, int]) -> None:
    assert {mark.kind: mark.copies for mark in compare(case(expected, found))} == kinds


def test_a_total_that_differs_is_a_wrong_aggregate() -> None:
    (mark,) = compare(case([A], [("1", "a", "4")], aggregate=True))
    assert mark == Mark(Kind.WRONG_AGGREGATE, ("1",), [A], [("1", "a", "4")])


def test_without_a_key_a_changed_row_is_lost_and_unexpected() -> None:
    assert marks(case([A, B], [A, ("2", "b", "7")], key=())) == Counter(
        {(Kind.LOST, B, 1): 1, (Kind.UNEXPECTED, ("2", "b", "7"), 1): 1}
    )


def test_an_unexpected_row_has_nothing_on_the_expected_side() -> None:
    assert list(compare(case([], [A, A]))) == [Mark(Kind.UNEXPECTED, ("1",), [], [A, A])]


def test_doubled_rows_of_one_key_are_shown_once_each_null_first() -> None:
    rows: list[Row] = [("1", "b", "5"), ("1", "", "5"), ("1", None, "5")]
    (mark,) = compare(case(rows, rows * 3))
    assert (mark.expected, mark.copies) == ([rows[2], rows[1], rows[0]], 6)


def test_of_rows_equally_unlike_the_first_is_paired_null_first() -> None:
    rows: list[Row] = [("1", "b", "5"), ("1", "", "6"), ("1", None, "7")]
    wrong, lost = compare(case(rows, [("1", "x", "8")]))
    assert (wrong.expected, lost.expected) == ([rows[2]], [rows[1], rows[0]])


def test_cells_are_named_one_to_one() -> None:
    assert by_column(("a", "b"), ("1", None)) == {"a": "1", "b": None}
    for row in (("1",), ("1", "2", "3")):
        with pytest.raises(ValueError, match="zip"):
            by_column(("a", "b"), row)


def test_the_likest_rows_are_paired() -> None:
    one, other = ("1", "a", "5"), ("1", "b", "6")
    lost, corrupted = sorted(compare(case([one, other], [("1", "b", "7")])), key=lambda mark: mark.kind, reverse=True)
    assert (lost.kind, lost.expected) == (Kind.LOST, [one])
    assert (corrupted.kind, corrupted.expected, corrupted.found) == (Kind.CORRUPTED, [other], [("1", "b", "7")])


@pytest.mark.parametrize("count", [3, PAIRS_MAX + 1])
def test_many_rows_of_one_key_are_paired_in_order(count: int) -> None:
    expected: list[Row] = [("1", "a", f"{i:06}") for i in range(count)]
    found: list[Row] = [("1", "b", f"{i:06}") for i in range(count + 2)]
    wrong, extra = compare(case(expected, found, key=("id",)))
    assert (wrong.kind, wrong.copies, extra.kind, extra.copies) == (Kind.CORRUPTED, count, Kind.DUPLICATED, 2)
    assert (wrong.expected[0], wrong.found[0]) == (expected[0], found[0])
    assert extra.found == found[-2:]
    wrong, lost = compare(case(found, expected, key=("id",)))
    assert (wrong.kind, wrong.copies, lost.kind, lost.expected) == (Kind.CORRUPTED, count, Kind.LOST, found[-2:])


def test_a_faithful_copy_has_no_note_and_an_altered_one_has() -> None:
    (plain,) = compare(case([A], [A, A]))
    (altered,) = compare(case([A], [A, A, ("1", "a", "4")]))
    (alone,) = compare(case([A], [A, ("1", "a", "4")]))
    assert (plain.expected, plain.found, plain.note) == ([A], [A], "")
    assert (altered.expected, altered.found) == ([A], [("1", "a", "4"), A])
    assert altered.note == f"1 of 2 {ALTERED}"
    assert (alone.expected, alone.note) == ([A], f"1 of 1 {ALTERED}")
    told = [finding(case([A], [A]), mark).altered for mark in (plain, altered, alone)]
    assert told == [False, True, True]


def test_marks_come_sorted_by_key_numbers_by_value_and_null_last() -> None:
    rows: list[Row] = [(cell, "a", "1") for cell in ("10", "9", None, "-1", "NaN", "2.5")]
    assert [mark.key[0] for mark in compare(case(rows, []))] == ["-1", "2.5", "9", "10", "NaN", None]
    texts: list[Row] = [("1", cell, "1") for cell in ("b", None, "a", "")]
    keys = [mark.key[1] for mark in compare(case(texts, [], key=("id", "account")))]
    assert keys == ["", "a", "b", None]


def test_a_finding_names_cells_by_column() -> None:
    one = case([A, B], [("1", "a", "4"), B])
    (mark,) = compare(one)
    assert finding(one, mark) == Finding(
        kind=Kind.CORRUPTED,
        sink="postgres payments",
        key={"id": "1"},
        expected=({"id": "1", "account": "a", "amount": "5"},),
        found=({"id": "1", "account": "a", "amount": "4"},),
        copies=1,
    )
    keyless = case([A], [], key=())
    (mark,) = compare(keyless)
    assert finding(keyless, mark).key == {"id": "1", "account": "a", "amount": "5"}


def test_a_finding_shows_some_rows_and_counts_all() -> None:
    one = case([A] * (ROWS_MAX + 5), [])
    (mark,) = compare(one)
    lost = finding(one, mark)
    assert (len(lost.expected), lost.found, lost.copies, lost.note) == (ROWS_MAX, (), ROWS_MAX + 5, "")
    two = case([A], [A, *[("1", "b", "1")] * 30])
    (mark,) = compare(two)
    extra = finding(two, mark)
    assert (len(extra.found), extra.copies, extra.note) == (ROWS_MAX, 30, f"30 of 30 {ALTERED}")


def test_an_unknown_key_column_is_an_error() -> None:
    with pytest.raises(ValueError, match="tuple"):
        list(compare(case([A], [], key=("nope",))))
