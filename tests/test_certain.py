"""What a wrong total shows for certain under a weaker guarantee: never a harm that was not done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.checkers.cells import Row
from harness.checkers.offset_ranges import OffsetRange, OffsetRanges
from harness.judge.baseline import Shown
from harness.judge.certain import certainly
from harness.judge.guarantee import violates
from harness.scenario import Finding, Guarantee, Harm, Kind
from tests.folders import PER_RECORD, TOTALS, values
from tests.limits import examples
from tests.scales import Bench, Make, batch, benches

AGAIN, GONE, NOTHING = (Harm.REPETITION,), (Harm.LOSS,), ()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    yield from benches(tmp_path)


def told(bench: Bench, end: Sequence[Row], *, allows: Harm = Harm.LOSS) -> set[tuple[Harm, ...]]:
    out = bench.findings(replace(bench.scale(end), allows=allows))
    assert {each.kind for each in out} == {Kind.WRONG_AGGREGATE}
    return {each.harms for each in out}


def test_a_total_that_is_too_high_counted_something_again(make: Make) -> None:
    bench = make(TOTALS)
    assert told(bench, bench.rows(again=(batch(1),))) == {AGAIN}
    assert told(bench, bench.rows(again=(batch(1),)), allows=Harm.REPETITION) == {AGAIN}


def test_a_total_that_is_too_low_lost_something(make: Make) -> None:
    bench = make(TOTALS)
    assert told(bench, bench.rows(without=batch(1))) == {GONE}
    assert told(bench, bench.rows(without=(OffsetRange(0, 5, 7), OffsetRange(1, 5, 7)))) == {GONE}


def test_under_exactly_once_nothing_is_asked(make: Make) -> None:
    bench = make(TOTALS)
    out = bench.findings(bench.scale(bench.rows(without=batch(1))))
    assert {each.harms for each in out} == {NOTHING}


NETS = replace(TOTALS, expected="select account, sum(amount) as total from ledger group by account")
PEAK = replace(TOTALS, expected="select account, max(amount) as peak from ledger group by account")
ONES = replace(
    TOTALS, expected="select id as account, sum(amount) as total from ledger group by id having count(*) < 2"
)


def test_of_a_column_that_records_make_smaller_nothing_is_said(make: Make) -> None:
    minus = [{**each, "amount": "-1.00" if each["id"] == 12 else each["amount"]} for each in values(40)]
    bench = make(NETS, records=minus)
    out = bench.findings(replace(bench.scale(bench.rows(without=batch(2))), allows=Harm.LOSS))
    assert {(each.key["account"] == "a0", each.harms) for each in out} == {(True, NOTHING), (False, GONE)}


def test_a_record_that_adds_nothing_makes_no_sum_smaller(make: Make) -> None:
    bench = make(NETS, records=[{**each, "amount": "0" if each["id"] < 4 else each["amount"]} for each in values(40)])
    assert told(bench, bench.rows(without=batch(2))) == {GONE}
    half = [{**each, "amount": "0.50" if each["id"] < 4 else each["amount"]} for each in values(40)]
    bench = make(NETS, records=half)
    assert told(bench, bench.rows(without=batch(2))) == {GONE}


def test_each_column_tells_for_itself(make: Make) -> None:
    bench = make(TOTALS)
    first, *rest = bench.rows()
    lower = (first[0], first[1], "0.01")
    assert told(bench, [lower, *rest]) == {GONE}, "the count is right"
    assert told(bench, [(first[0], "1", first[2]), *rest]) == {GONE}, "the sum is right"
    assert told(bench, [(first[0], first[1], None), *rest]) == {GONE}, "null is the sum of nothing"


def test_of_what_is_no_number_nothing_is_said(make: Make) -> None:
    bench = make(NETS)
    assert told(bench, [(account, "NaN") for account, _ in bench.rows()]) == {NOTHING}


def test_where_a_key_has_several_totals_nobody_can_tell_which_is_which(make: Make) -> None:
    bench = make(replace(TOTALS, expected="select account, id % 8 < 4 as low, count(*) as n from ledger group by all"))
    for allows in (Harm.LOSS, Harm.REPETITION):
        out = bench.findings(replace(bench.scale(bench.rows(again=(batch(1),))), allows=allows))
        assert {(each.kind, each.vague, each.harms) for each in out} == {(Kind.WRONG_AGGREGATE, True, NOTHING)}


def test_of_what_is_no_sum_nothing_is_said(make: Make) -> None:
    bench = make(PEAK)
    end: list[Row] = [(bench.rows()[0][0], "0.5"), *bench.rows()[1:]]
    assert told(bench, end) == {NOTHING}


def test_of_a_row_that_others_may_take_away_nobody_can_tell(make: Make) -> None:
    bench = make(ONES)
    assert (
        row(bench, bench.rows()[1:], Harm.LOSS) == row(bench, bench.rows()[1:], Harm.REPETITION) == {(Kind.LOST, True)}
    )


def row(bench: Bench, end: Sequence[Row], allows: Harm) -> set[tuple[Kind, bool]]:
    return {(each.kind, each.vague) for each in bench.findings(replace(bench.scale(end), allows=allows))}


ALIKE = replace(PER_RECORD, expected="select account from ledger", key=())
ACCOUNT = replace(PER_RECORD, expected="select account, amount from ledger", key=("account",))


def test_a_row_of_several_records_hides_what_the_guarantee_forbids(make: Make) -> None:
    """One copy too many may be two that came again and one that is lost."""
    bench = make(ALIKE)
    more, less = [*bench.rows(), ("a0",)], [*bench.rows()][1:]
    assert row(bench, more, Harm.REPETITION) == {(Kind.DUPLICATED, True)}
    assert row(bench, more, Harm.LOSS) == {(Kind.DUPLICATED, False)}, "one came again for certain"
    assert row(bench, less, Harm.LOSS) == {(Kind.LOST, True)}
    assert row(bench, less, Harm.REPETITION) == {(Kind.LOST, False)}, "one is lost for certain"
    none = [each for each in bench.rows() if each != ("a0",)]
    assert row(bench, none, Harm.LOSS) == {(Kind.LOST, False)}, "none of them can have come again"


def test_a_row_of_one_record_hides_nothing_beside_a_row_of_several(make: Make) -> None:
    alone = [{**each, "account": "a9" if each["id"] == 7 else each["account"]} for each in values(40)]
    bench = make(replace(ALIKE, expected="select account, '' as x from ledger", key=("x",)), records=alone)
    again: list[Row] = [*bench.rows(), ("a9", "")]
    assert row(bench, again, Harm.REPETITION) == {(Kind.DUPLICATED, False)}
    assert row(bench, [*bench.rows(), ("a0", "")], Harm.REPETITION) == {(Kind.DUPLICATED, True)}
    twins = [{**each, "account": "a9" if each["id"] in (7, 8) else each["account"]} for each in values(40)]
    bench = make(replace(ALIKE, expected="select account, '' as x from ledger", key=("x",)), records=twins)
    assert row(bench, [*bench.rows(), ("a9", "")], Harm.REPETITION) == {(Kind.DUPLICATED, True)}


def test_rows_that_differ_hide_nothing_though_they_share_a_key(make: Make) -> None:
    bench = make(ACCOUNT)
    rows = bench.rows()
    assert row(bench, [*rows, rows[0]], Harm.REPETITION) == {(Kind.DUPLICATED, False)}
    assert row(bench, rows[1:], Harm.LOSS) == {(Kind.LOST, False)}


def test_findings_of_no_row_are_never_vague(make: Make) -> None:
    bench = make(ONES)
    scale = replace(bench.scale(), allows=Harm.LOSS)
    late = Finding(kind=Kind.MISORDERED, sink="t")
    assert certainly(scale, [late, replace(late, kind=Kind.LOST)]) == [
        late,
        replace(late, kind=Kind.LOST, vague=True),
    ]


SHAPES = {
    "select account, count(*) as n, sum(amount) as total from ledger group by account": "account",
    "select account, sum(amount) as total, max(amount) as peak from ledger group by account": "account",
    "select account, count(distinct amount) as n, sum(id) as ids from ledger group by account": "account",
    "select account, coalesce(sum(amount), 0)::bigint as n, avg(amount) as mean from ledger group by all": "account",
    "select account, (max(id) - min(id) + 2 - 2 * count(*))::bigint as gaps from ledger group by account": "account",
    "select account, count(*) as n from ledger group by account having count(*) <= 10": "account",
    "select account, count(*) filter (where amount > 3) as n from ledger group by rollup (account)": "account",
    "select account, count(*) as n from ledger group by account": "",
    "select id, account from ledger where amount > 3": "id",
    "select account, amount from ledger": "",
    "select account, amount from ledger limit 15": "",
    "select distinct account, amount from ledger": "",
    "select distinct on (amount) amount, id from ledger order by amount, id": "amount",
    "select l.id, r.amount from ledger l left join ledger r on r.id = l.id + 1": "id",
    "select id, account from ledger l where not exists (from ledger r where r.id = l.id + 1)": "id",
    "select id, sum(amount) over (partition by account order by id) as balance from ledger": "id",
    "with t as (select account, count(*) as n from ledger group by account) select * from t where n < 11": "account",
}
ALL = range(20)
SOME = st.sets(st.sampled_from(ALL), max_size=6)


def ranges(ids: set[int]) -> OffsetRanges:
    return tuple(OffsetRange(0, each, each + 1) for each in sorted(ids))


@settings(max_examples=examples(200))
@given(
    amounts=st.lists(st.integers(-2, 9), min_size=20, max_size=20),
    some=st.tuples(SOME, SOME),
    shape=st.sampled_from(sorted(SHAPES)),
    guarantee=st.sampled_from([Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE]),
)
def test_nothing_is_claimed_that_was_not_done(
    tmp_path_factory: pytest.TempPathFactory,
    amounts: list[int],
    some: tuple[set[int], set[int]],
    shape: str,
    guarantee: Guarantee,
) -> None:
    """Any records may be lost, and others counted twice."""
    records = [{"id": i, "account": f"a{i % 2}", "amount": str(amount)} for i, amount in enumerate(amounts)]
    sink = replace(TOTALS, expected=shape, key=tuple(filter(None, [SHAPES[shape]])))
    bench = Bench(tmp_path_factory.mktemp("ledger"), sink, records=records, partitions=1)
    lost, again = some[0], some[1] - some[0]
    end = bench.rows(without=ranges(lost), again=(ranges(again),) if again else ())
    least = guarantee is Guarantee.AT_LEAST_ONCE
    for each in bench.findings(replace(bench.scale(end), allows=guarantee.allows)):
        mine = {i for i in ALL if all(str(records[i].get(name, cell)) == cell for name, cell in each.key.items())}
        assert Harm.LOSS not in each.harms or lost & mine
        assert Harm.REPETITION not in each.harms or again & mine
        answer = violates(each, guarantee, harms=each.harms, shown=Shown.CLEAN, struck=True)
        assert answer is not True or (lost if least else again)
    bench.ledger.__exit__(None, None, None)
