"""The checker of order, on histories by hand and on any shuffled one."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.cells import Row
from harness.checkers.compare import ROWS_MAX
from harness.checkers.order import OrderCase, misordered, placed, sortable
from harness.scenario import Finding, Kind, Order

ORDER = Order(by="at", follows="seq", per=("account",))


def order_case(rows: list[Row], *, families: tuple[str, ...] = ("number", "text", "number")) -> OrderCase:
    """Rows of (at, account, seq)."""
    return OrderCase(sink="postgres log", columns=("at", "account", "seq"), families=families, order=ORDER, found=rows)


def late(rows: list[Row]) -> dict[str | None, int]:
    return {finding.key["account"]: finding.copies for finding in misordered(order_case(rows))}


def history(*seqs: int | None, account: str = "a") -> list[Row]:
    return [(str(at), account, None if seq is None else str(seq)) for at, seq in enumerate(seqs)]


@pytest.mark.parametrize(
    ("seqs", "copies"),
    [
        ((), 0),
        ((1,), 0),
        ((1, 2, 3), 0),
        ((1, 3, 10, 11), 0),
        ((1, 3, 2), 1),
        ((3, 2, 1), 2),
        ((10, 9, 11), 1),
        ((1, 2, 3, 1, 2, 3, 4), 0),
        ((1, 1, 1), 0),
        ((2, 1, 1), 1),
        ((1, None, 2), 0),
        ((3, None, 2), 1),
        ((5, 1, 2, 6), 2),
    ],
)
def test_histories_by_hand(seqs: tuple[int | None, ...], copies: int) -> None:
    assert late(history(*seqs)) == ({"a": copies} if copies else {})


def test_each_account_has_an_order_of_its_own() -> None:
    rows = [*history(1, 5, account="a"), *history(4, 2, account="b"), *history(9, 3, 4, account="c")]
    assert late(rows) == {"b": 1, "c": 2}


def test_rows_that_tie_have_no_order_but_count_for_what_follows() -> None:
    assert late([("1", "a", "2"), ("1", "a", "1"), ("1", "a", "3")]) == {}
    assert late([("1", "a", "5"), ("1", "a", "1"), ("2", "a", "4"), ("2", "a", "6")]) == {"a": 1}
    assert late([("1", "a", "3"), ("2", "a", "3"), ("3", "a", "2")]) == {"a": 1}
    assert late([("1", "a", "9"), ("2", "a", "1"), ("3", "a", "5")]) == {"a": 2}


def test_rows_without_a_place_are_left_out() -> None:
    rows: list[Row] = [(None, "a", "1"), ("1", "a", None), ("NaN", "a", "0"), ("2", "a", "5")]
    assert late(rows) == {}
    assert placed(order_case(rows)) == 0
    assert placed(order_case([*rows, ("3", "a", "6"), ("3", "b", "6")])) == 2
    assert placed(order_case([("1", "a", "1"), ("2", "a", "1"), ("1", "b", "1"), ("2", "b", "1")])) == 4


def test_numbers_sort_by_value_and_texts_as_texts() -> None:
    rows: list[Row] = [("9", "a", "9"), ("10", "a", "10")]
    assert late(rows) == {}
    as_text = order_case(rows, families=("text", "text", "number"))
    assert [finding.copies for finding in misordered(as_text)] == [1]
    assert [f.copies for f in misordered(order_case(rows, families=("number", "text", "text")))] == [1]


@pytest.mark.parametrize(
    ("cell", "family", "bigger"),
    [
        ("2", "number", "10"),
        ("9.0", "float", "10.0"),
        ("-1.5", "float", "1e-05"),
        ("2026-01-01", "date", "2026-01-02"),
        ("9999-12-31", "date", "10000-01-01"),
        ("0044-03-15 BC", "date", "0043-03-14 BC"),
        ("0001-12-31 BC", "date", "0001-01-01"),
        ("9999-12-31", "date", "infinity"),
        ("-infinity", "timestamp", "0044-03-15T00:00:00.000000 BC"),
        ("2026-01-01T00:00:00.000000Z", "instant", "2026-01-01T00:00:00.000000001Z"),
        ("2026-01-01T00:00:00.000000009Z", "instant", "2026-01-01T00:00:00.000001Z"),
        ("2026-01-01T00:00:00.000000", "timestamp", "2026-01-01T00:00:00.000000001"),
        ("", "text", "a"),
    ],
)
def test_cells_sort_as_their_values(cell: str, family: str, bigger: str) -> None:
    one, other = sortable(cell, family), sortable(bigger, family)
    assert one is not None and other is not None and one < other


@pytest.mark.parametrize("cell", [None, "NaN", "nan"])
def test_what_has_no_order(cell: str | None) -> None:
    assert sortable(cell, "float") is None


def test_the_finding_shows_who_ran_ahead_and_who_came_late() -> None:
    (finding,) = misordered(order_case(history(3, 1)))
    assert finding == Finding(
        kind=Kind.MISORDERED,
        sink="postgres log",
        key={"account": "a"},
        found=({"at": "0", "account": "a", "seq": "3"}, {"at": "1", "account": "a", "seq": "1"}),
        copies=1,
        note="seq falls when sorted by at",
    )
    (many,) = misordered(order_case(history(*range(100, 0, -1))))
    assert (many.copies, len(many.found)) == (99, ROWS_MAX)


def test_columns_that_are_not_there_are_named() -> None:
    def refused(*columns: str) -> str:
        with pytest.raises(ValueError, match="has no column") as refusal:
            OrderCase(sink="s", columns=columns, families=("number",) * len(columns), order=ORDER, found=[])
        return str(refusal.value)

    assert refused("at", "seq") == "s has no column account; it has at, seq"
    assert refused("seq") == "s has no column at, account; it has seq"


def test_rows_that_tie_in_everything_but_other_columns_are_no_trouble() -> None:
    rows: list[Row] = [("1", "a", "1", None), ("1", "a", "1", "x"), ("0", "a", "5", None)]
    families = ("number", "text", "number", "text")
    one = OrderCase(sink="s", columns=("at", "account", "seq", "note"), families=families, order=ORDER, found=rows)
    assert [finding.copies for finding in misordered(one)] == [2]


@given(st.lists(st.integers(), unique=True), st.randoms(use_true_random=False))
def test_only_rising_histories_are_in_order(seqs: list[int], rng: Random) -> None:
    rows = history(*seqs)
    rng.shuffle(rows)
    highest, behind = None, 0
    for seq in seqs:
        behind += highest is not None and seq < highest
        highest = seq if highest is None else max(seq, highest)
    assert late(rows) == ({"a": behind} if behind else {})


@given(st.lists(st.integers(0, 50), unique=True, min_size=1), st.data())
def test_a_replay_is_no_disorder(seqs: list[int], data: st.DataObject) -> None:
    rising = sorted(seqs)
    start = data.draw(st.integers(0, len(rising) - 1))
    end = data.draw(st.integers(start + 1, len(rising)))
    assert late(history(*rising[:end], *rising[start:end], *rising[end:])) == {}
