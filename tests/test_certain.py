"""What a wrong total shows for certain under a weaker guarantee: never a harm that was not done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.checkers.cells import Row
from harness.checkers.spans import Span, Spans
from harness.judge import certain as room
from harness.judge.stakes import Weighed
from harness.judge.strikes import Reach, Strike
from harness.scenario import Harm, Kind, Sink
from tests.folders import HIT, TOTALS, values
from tests.scales import Bench, Make, batch, benches, hit, upto

AGAIN, GONE, NOTHING = (Harm.REPETITION,), (Harm.LOSS,), ()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    yield from benches(tmp_path)


def told(bench: Bench, end: Sequence[Row], *weighed: Weighed, allows: Harm = Harm.LOSS) -> set[tuple[Any, ...]]:
    out = bench.findings(replace(bench.scale(end), allows=allows), weighed)
    assert {each.kind for each in out} == {Kind.WRONG_AGGREGATE}
    return {(each.harms, each.staked) for each in out}


def test_a_total_that_is_too_high_counted_something_again(make: Make) -> None:
    bench = make(TOTALS)
    assert told(bench, bench.rows(again=(batch(1),))) == {(AGAIN, True)}
    assert told(bench, bench.rows(again=(batch(1),)), allows=Harm.REPETITION) == {(AGAIN, True)}


def test_a_total_that_is_too_low_lost_something(make: Make) -> None:
    bench = make(TOTALS)
    struck = hit(bench, bench.first(1))
    assert told(bench, bench.rows(without=batch(1)), struck) == {(GONE, True)}, "no more than what was at stake"
    assert told(bench, bench.rows(without=(Span(0, 5, 7), Span(1, 5, 7))), struck) == {(GONE, True)}
    assert told(bench, bench.rows(without=batch(1))) == {(GONE, False)}
    assert told(bench, bench.rows(without=batch(2)), struck) == {(GONE, False)}, "amounts are larger there"


def test_what_saved_offsets_call_done_may_have_been_in_hand(make: Make) -> None:
    bench = make(TOTALS)
    own = Reach(low=upto(2), high=upto(2), last=batch(1), own=True)
    strike = Strike(number=1, outcome=HIT)
    assert told(bench, bench.rows(without=batch(1)), Weighed(strike=strike, reach=own, why="no snapshot")) == {
        (GONE, True)
    }
    spark = replace(own, own=False)
    assert told(bench, bench.rows(without=batch(1)), Weighed(strike=strike, reach=spark, why="no snapshot")) == {
        (GONE, None)
    }, "nobody knows what was at stake"


def test_under_exactly_once_nothing_is_asked(make: Make) -> None:
    bench = make(TOTALS)
    out = bench.findings(bench.scale(bench.rows(without=batch(1))), [])
    assert {each.harms for each in out} == {NOTHING}


NETS = replace(TOTALS, effect="select account, sum(amount) as total from ledger group by account")
PEAK = replace(TOTALS, effect="select account, max(amount) as peak from ledger group by account")
ONES = replace(TOTALS, effect="select id as account, sum(amount) as total from ledger group by id having count(*) < 2")


def test_of_a_column_that_records_make_smaller_nothing_is_said(make: Make) -> None:
    minus = [{**each, "amount": "-1.00" if each["id"] == 12 else each["amount"]} for each in values(40)]
    bench = make(NETS, records=minus)
    out = bench.findings(replace(bench.scale(bench.rows(without=batch(2))), allows=Harm.LOSS), [])
    assert {(each.key["account"] == "a0", each.harms) for each in out} == {(True, NOTHING), (False, GONE)}


@pytest.mark.parametrize("sink", [PEAK, ONES])
def test_of_what_is_no_sum_nothing_is_said(make: Make, sink: Sink) -> None:
    bench = make(sink)
    end: list[Row] = [(bench.rows()[0][0], "0.5"), *bench.rows()[1:]]
    assert told(bench, end) == {(NOTHING, True)}


def test_a_large_ledger_is_tried_in_stretches(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make(TOTALS)
    monkeypatch.setattr(room, "PIECES_MAX", 7)
    assert told(bench, bench.rows(without=batch(1))) == {(GONE, False)}
    asked = list(room._pieces(bench.scale()))
    assert [*asked[:2], asked[-1]] == [Span(0, 0, 6), Span(0, 6, 12), Span(1, 18, 20)]


SHAPES = (
    "select account, count(*) as n, sum(amount) as total from ledger group by account",
    "select account, sum(amount) as total, max(amount) as peak from ledger group by account",
    "select account, count(distinct amount) as n, sum(id) as ids from ledger group by account",
    "select account, count(*) as n, avg(amount) as mean from ledger group by account",
)
ALL = range(20)
SOME = st.sets(st.sampled_from(ALL), max_size=6)


def spans(ids: set[int]) -> Spans:
    return tuple(Span(0, each, each + 1) for each in sorted(ids))


@settings(max_examples=60)
@given(
    amounts=st.lists(st.integers(-2, 9), min_size=20, max_size=20),
    some=st.tuples(SOME, SOME, SOME),
    shape=st.sampled_from(SHAPES),
)
def test_no_harm_is_claimed_that_was_not_done(
    tmp_path_factory: pytest.TempPathFactory,
    amounts: list[int],
    some: tuple[set[int], set[int], set[int]],
    shape: str,
) -> None:
    """Any records may be lost, and others counted twice; some were at stake."""
    records = [{"id": i, "account": f"a{i % 2}", "amount": str(amount)} for i, amount in enumerate(amounts)]
    bench = Bench(tmp_path_factory.mktemp("ledger"), replace(TOTALS, effect=shape), records=records, partitions=1)
    lost, again, staked = some[0], some[1] - some[0], some[2]
    end = bench.rows(without=spans(lost), again=(spans(again),) if again else ())
    hits = [Weighed(strike=Strike(number=1, outcome=HIT), missing=spans(staked))]
    for each in bench.findings(replace(bench.scale(end), allows=Harm.LOSS), hits):
        mine = {i for i in ALL if f"a{i % 2}" == each.key["account"]}
        assert Harm.LOSS not in each.harms or lost & mine
        assert Harm.REPETITION not in each.harms or again & mine
        assert each.kind is not Kind.WRONG_AGGREGATE or each.staked or (lost - staked) & mine
    bench.effects.__exit__(None, None, None)
