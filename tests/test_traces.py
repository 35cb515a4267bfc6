"""Which rows are a trace of the records in flight: those that the records make, and totals that have grown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.checkers.cells import Row
from harness.judge.readings.sink_state import sink_state
from harness.judge.readings.traces import Traces
from harness.sinks.table import SinkTable
from tests.folders import PER_RECORD, TOTALS, values
from tests.scales import COUNTED, PEAKS, Bench, Make, batch, benches, injected, progress, upto

NEW = [{**each, "account": "b" if 10 <= each["id"] < 20 else "a"} for each in values(40)]
"""The second batch has an account of its own."""
SUMS = replace(TOTALS, expected="select account, sum(amount) as total from ledger group by account")
A, B = ("a",), ("b",)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    yield from benches(tmp_path)


def traces(
    bench: Bench, there: Sequence[Row] | SinkTable, *, low: int = 1, high: int = 2
) -> set[tuple[str | None, ...]]:
    """The keys under which there is a trace of what lies between two batches."""
    scale = bench.scale()
    table = there if isinstance(there, SinkTable) else bench.held(there)
    now = sink_state(scale.case, table, names=bench.columns)
    assert now is not None
    base, full = scale.upto(upto(low), now), scale.upto(upto(high), now)
    found = Traces(scale, now, base, full)
    return {key for key in {*base, *full, *now.rows} if found.of(key)}


def test_a_row_has_to_be_the_one_that_its_record_gives(make: Make) -> None:
    bench = make()
    first, second = bench.first(1), bench.rows(*batch(1))[:2]
    assert traces(bench, first) == set()
    assert traces(bench, [*first, *second]) == {(row[0],) for row in second}
    assert traces(bench, [*first, *((row[0], row[1], "0") for row in second)]) == set(), "made in advance"
    assert traces(bench, [*first, *second, *second]) == {(row[0],) for row in second}
    assert traces(bench, first[1:]) == set(), "nothing came"


def test_what_the_records_take_away_may_be_gone(make: Make) -> None:
    bench = make(replace(COUNTED, expected="select account, count(*) as n from ledger group by 1 having count(*) < 4"))
    assert len(bench.first(1)) == 4 and not bench.first(2)
    assert traces(bench, bench.first(1)[1:]) == {(bench.first(1)[0][0],)}


@pytest.mark.parametrize(
    ("sink", "made", "grown"),
    [
        (TOTALS, ("b", "0", "0"), ("b", "2", "21.21")),
        (TOTALS, ("b", "0", None), ("b", "1", "0")),
        (SUMS, ("b", "0"), ("b", "11.11")),
        (PEAKS, ("b", "0"), ("b", "11.11")),
        (PEAKS, ("b", None), ("b", "-1")),
    ],
)
def test_a_total_that_was_made_in_advance_is_none_until_it_has_grown(
    make: Make, sink: object, made: Row, grown: Row
) -> None:
    bench = make(sink, records=NEW)
    assert traces(bench, [*bench.first(1), made]) == set()
    assert traces(bench, [*bench.first(1), grown]) == {B}
    assert traces(bench, bench.first(2)) == {B}


def test_a_total_that_only_grows_is_none_where_it_is_lower(make: Make) -> None:
    bench = make(TOTALS, records=[{**each, "account": "a"} for each in values(40)])
    (one,), (two,) = bench.first(1), bench.first(2)
    assert traces(bench, [one], low=2, high=3) == set(), "as it was a batch ago"
    assert traces(bench, [("a", "13", one[2])], low=2, high=3) == set(), "between two of its batches"
    assert traces(bench, [("a", "21", two[2])], low=2, high=3) == {A}
    assert traces(bench, [("a", "99", "1")], low=2, high=3) == {A}, "it has grown, if by too much"


def test_a_total_that_may_shrink_is_one_where_it_is_another(make: Make) -> None:
    minus = [{**each, "account": "a", "amount": f"-{each['amount']}"} for each in values(40)]
    bench = make(SUMS, records=minus)
    for total in ("7", "0", "-9999"):
        assert traces(bench, [("a", total)], low=2, high=3) == {A}
    peaks = make(PEAKS, records=[{**each, "account": "a"} for each in values(40)])
    assert traces(peaks, [("a", "7")], low=2, high=3) == {A}


def test_one_that_adds_nothing_does_not_make_a_sum_shrink(make: Make) -> None:
    some = [{**each, "account": "a", "amount": "0" if each["id"] == 3 else each["amount"]} for each in values(40)]
    bench = make(SUMS, records=some)
    assert traces(bench, [("a", "7")], low=2, high=3) == set()


def test_of_several_totals_of_a_key_only_the_right_ones_are_traces(make: Make) -> None:
    halves = replace(TOTALS, expected="select account, id % 8 < 4 as low, count(*) as n from ledger group by all")
    bench = make(halves)
    there = [*bench.first(1), ("a0", "true", "99")]
    assert traces(bench, there) == set()
    assert traces(bench, bench.first(2)) == {(row[0],) for row in set(bench.first(2)) - set(bench.first(1))}


def test_a_row_that_was_there_before_is_none_where_it_is_there_twice(make: Make) -> None:
    bench = make(replace(PER_RECORD, key=("account",)))
    first = bench.first(1)
    assert traces(bench, [*first, first[0]]) == set()
    assert traces(bench, [*first, bench.rows(*batch(1))[0]])


@pytest.mark.parametrize(
    ("expected", "before", "after"),
    [
        ("select account, id < 10 as low, count(*) as n from ledger group by all", 1, 2),
        ("select account, id % 8 < 4 as low, count(*) as n from ledger group by all having count(*) < 3", 2, 1),
    ],
)
def test_where_a_key_comes_to_several_totals_an_odd_one_is_none(
    make: Make, expected: str, before: int, after: int
) -> None:
    bench = make(replace(TOTALS, expected=expected))
    many = [sum(row[0] == "a0" for row in bench.first(batches)) for batches in (1, 2)]
    assert many == [before, after]
    assert ("a0",) not in traces(bench, [*bench.first(1), ("a0", "true", "99")])


def test_of_fingerprints_only_the_right_ones_are_traces(make: Make) -> None:
    bench = make(TOTALS, records=NEW)
    assert traces(bench, bench.marked([*bench.first(1), ("b", "2", "21.21")])) == set()
    assert traces(bench, bench.marked(bench.first(2))) == {B}


def test_a_row_without_a_key_is_known_by_all_its_cells(make: Make) -> None:
    bench = make(replace(PER_RECORD, key=()))
    second = bench.rows(*batch(1))[0]
    assert traces(bench, [*bench.first(1), second]) == {second}
    assert injected(bench, [*bench.first(1), second], progress()).reprocessed
