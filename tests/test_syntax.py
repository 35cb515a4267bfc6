"""What the syntax of `expected` says of it: whether a key hangs on other records, which columns only grow."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ledger import Ledger, syntax
from harness.ledger.functions import known
from tests.folders import TOTALS
from tests.scales import Bench

GROUPED = "select account, {} from ledger group by account"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    # Not the answers that tests remember for each other.
    with Bench(Path(tmp_path_factory.mktemp("ledger")), TOTALS).ledger.fresh() as made:
        yield made


@pytest.mark.parametrize(
    "sql",
    [
        "select id, account from ledger where amount > 3 order by id",
        "select * from ledger",
        "select distinct account, id from ledger",
        "select account, count(*) as n from ledger group by account",
        "select account, count(*) as n from ledger group by all order by n",
        "select account, max(amount) as peak, count(distinct id) as ids from ledger where id > 1 group by 1",
        "select upper(account) as account, count(*) filter (where id > 3) as n from ledger group by 1",
        "select 1 as account, count(*) as n from ledger",
        "select account, amount > 3 as large, max(amount) as amount from ledger group by all",
        "select count(*), sum(amount), account from ledger group by account",
    ],
)
def test_a_key_that_is_there_if_one_of_its_records_is(ledger: Ledger, sql: str) -> None:
    assert ledger.keyed(sql, ("account",))


@pytest.mark.parametrize(
    "sql",
    [
        "select account, count(*) as n from ledger group by account having n > 1",
        "select account, id from ledger qualify row_number() over (partition by account order by id) = 1",
        "select account, sum(amount) over (order by id) as balance from ledger",
        "select account, count(*) as n from ledger group by rollup (account)",
        "select account, count(*) as n from ledger group by account limit 3",
        "select distinct on (amount) account, amount from ledger order by id",
        "select l.account from ledger l join ledger r on r.id = l.id + 1",
        "select account from ledger where amount > (select avg(amount) from ledger)",
        "select account from (select account, count(*) as n from ledger group by account) where n > 1",
        "with t as (select * from ledger) select account from t",
        "select account from ledger union all select account from ledger",
        "select count(*) as account from ledger",
        "select *, count(*) from ledger group by all",
        "select id, count(*) as n, n > 8 as account from ledger group by id",
        "select id, count(*) as n, n + 1 as more, case when MORE > 3 then 'x' end as account from ledger group by id",
    ],
)
def test_a_key_that_others_may_add_or_take_away(ledger: Ledger, sql: str) -> None:
    assert not ledger.keyed(sql, ("account",))


def test_a_sample_takes_away_what_it_likes(ledger: Ledger) -> None:
    tree = ledger._tree("select account from ledger using sample 3 rows")
    assert not syntax.keyed(tree, ("account",), ("account",), known().aggregates, ledger.columns())


def test_functions_are_known_by_what_duckdb_says_of_them() -> None:
    assert {"now", "random", "current_localtime", "currval"} <= known().unsteady
    assert known().unsteady.isdisjoint({"error", "assert_true", "current_schema", "date_trunc", "age", "hash"})
    assert known().several == {"unnest", "unlist", "generate_subscripts", "regexp_split_to_table"}
    assert {"sum", "arg_max"} <= known().aggregates


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("select id, current_localtimestamp() as t from ledger", "current_localtimestamp"),
        ("select id, id::varchar || current_localtime()::varchar as t from ledger", "current_localtime"),
        ("select id, current_transaction_id() as t from ledger", "current_transaction_id"),
        ("select id, current_query_id() as t from ledger", "current_query_id"),
        ("select id, current_connection_id() as t from ledger", "current_connection_id"),
        ("select id, list_transform([id], lambda x: x + random()) as t from ledger", "random"),
        ("select id, system.main.now() as t from ledger", "now"),
        ("select id, age(event_time) as t from ledger", "age with one argument"),
        ("select id, main.age(event_time) as t from ledger", "age with one argument"),
        ("select id, event_time.age() as t from ledger", "age with one argument"),
        ("select id from ledger using sample 50% (bernoulli)", "for a sample"),
        ("select id from ledger tablesample 5 rows", "for a sample"),
        ("select id from (from ledger using sample 1 rows) l", "for a sample"),
        ("with d as (from ledger tablesample 1%) select id from d", "for a sample"),
        ("select id, current_date as current_date from ledger", "current_date"),
        ("select id, current_date - 1 as current_date from ledger", "current_date"),
        ("select id, current_setting('threads') as t from ledger", "current_setting"),
        ("select id, event_time - age(event_time, sent) as t from ledger", ""),
        ("select id, date_trunc('hour', event_time) + interval '1 hour' as t from ledger", ""),
        ("select id, hour(event_time::timestamptz + interval '1 hour') as t from ledger", ""),
        ("select id, (event_time at time zone 'Europe/Berlin')::date as t from ledger", ""),
        ("select id, event_time.age(sent) as t from ledger", ""),
        ("select id, case when id < 0 then error('no') end as t from ledger", ""),
        ("with d(current_date) as (values (1)) select id, current_date as d from ledger, d", ""),
        ("select id, current_date as d from ledger, (values (1)) as d(current_date)", ""),
        ("select id, CURRENT_TIME as d from ledger, unnest([1]) as d(Current_Time)", ""),
        (
            "select current_date from (select d.current_date as current_date from ledger, (select 1) d(current_date))",
            "",
        ),
        ("select id, localtime from (select id, id + 1 as localtime from ledger)", ""),
    ],
)
def test_what_the_records_do_not_tell(ledger: Ledger, sql: str, asked: str) -> None:
    assert syntax.unsteady(ledger._tree(sql), ledger.columns(), known().unsteady) == asked


def test_a_column_of_the_ledger_goes_before_a_clock(ledger: Ledger) -> None:
    tree = ledger._tree("select current_date from ledger")
    assert syntax.unsteady(tree, ("id",), known().unsteady) == "current_date"
    assert syntax.unsteady(tree, ("Current_Date",), known().unsteady) == ""


@pytest.mark.parametrize(
    ("expression", "asked"),
    [
        ("unnest([1, 2])", "unnest"),
        ("1 + UNLIST([1, 2])", "unlist"),
        ("regexp_split_to_table('a b', ' ')", "regexp_split_to_table"),
        ("(select max(u) from unnest([1, 2]) t(u))", ""),
        ("(select unnest([id]))", ""),
        ("list_max([1, 2])", ""),
    ],
)
def test_which_function_gives_a_record_several_rows(ledger: Ledger, expression: str, asked: str) -> None:
    assert syntax.several(ledger._tree(f"select {expression} from ledger"), known().several) == asked


def test_a_column_that_hangs_on_a_count_by_way_of_others_hangs_on_it(ledger: Ledger) -> None:
    sql = "select id, count(*) as n, n + 1 as more, more + 1 as most from ledger group by id"
    assert [ledger.keyed(sql, (key,)) for key in ("id", "n", "more", "most")] == [True, False, False, False]


def test_a_query_with_other_functions_leaves_the_first_one_as_it_is(ledger: Ledger) -> None:
    tree = ledger._tree(GROUPED.format("sum(amount) as n"))
    before = json.dumps(tree)
    assert json.dumps(syntax.instead(tree, "min")) != before
    assert json.dumps(tree) == before


def test_a_union_has_no_function_of_its_own(ledger: Ledger) -> None:
    both = "select id, sum(amount) as n from ledger group by id union all select id, 0 from ledger"
    assert ledger.extreme(both, "min").rows == ledger.table(both).rows


def test_without_a_key_all_columns_are_the_key(ledger: Ledger) -> None:
    assert ledger.keyed("select account, id from ledger", ())
    assert not ledger.keyed(GROUPED.format("count(*) as n"), ())


@pytest.mark.parametrize(
    ("column", "counts"),
    [
        ("count(*) as n", True),
        ("count(id)::integer as n", True),
        ("COUNT_IF(id > 3) as n", True),
        ("count(*) filter (where id > 3) as n", True),
        ("sum(amount) as n", False),
        ("coalesce(sum(amount), 0)::decimal(18, 2) as n", False),
        ("coalesce(cast(sum(amount) as double), 0.0) as n", False),
    ],
)
def test_a_column_to_which_each_record_gives_its_own(ledger: Ledger, column: str, counts: bool) -> None:
    assert ledger.growing(GROUPED.format(column)) == {1: counts}


@pytest.mark.parametrize(
    "column",
    [
        "count(distinct id) as n",
        "sum(distinct amount) as n",
        "max(id) - min(id) as n",
        "max(amount) as n",
        "avg(amount) as n",
        "coalesce(sum(amount), 7) as n",
        "coalesce(sum(amount), max(id)) as n",
        "sum(amount) + 1 as n",
        "abs(sum(amount)) as n",
        "7 as n",
    ],
)
def test_a_column_that_may_do_otherwise(ledger: Ledger, column: str) -> None:
    assert ledger.growing(GROUPED.format(column)) == {}


def test_where_a_star_stands_the_places_are_not_known(ledger: Ledger) -> None:
    assert ledger.growing("select *, count(*) as n from ledger group by all") == {}
    for between in ("union all", "union", "except", "intersect"):
        assert ledger.growing(f"select count(*) as n from ledger {between} select count(*) as n from ledger") == {}
    assert ledger.growing("select account, sum(columns('id|amount')), count(*) as n from ledger group by all") == {}
    assert ledger.growing("select account, unnest({'a': 1, 'b': 2}), count(*) as n from ledger group by all") == {}
    assert ledger.summed("select account, sum(columns('id|amount')), avg(id) from ledger group by all") == ()


@pytest.mark.parametrize(
    ("expected", "places"),
    [
        ("select distinct id, amount from ledger", {0, 1}),
        ("select id, amount from ledger qualify row_number() over (partition by id order by _offset) = 1", {0, 1}),
        (
            "select account, max(amount) + 1 as top, count(*) as n, arg_max(id, id) as last from ledger group by all",
            {0, 1, 2, 3},
        ),
        (
            "select account, sum(amount) as total, total / 2 as half, min(amount) as least from ledger group by all",
            {0, 3},
        ),
        ("select id, sum(amount) over (order by _offset) as so_far from ledger", {0}),
        ("select account, median(amount) as middle, list_sum(list(amount)) as total from ledger group by all", {0}),
        ("select *, max(amount) as top from ledger group by all", set()),
        ("select account, top from (select account, sum(amount) as top from ledger group by all)", set()),
        ("select id, amount from ledger union all select id, amount from ledger", set()),
    ],
)
def test_what_an_aggregate_only_picks_is_never_rounded(ledger: Ledger, expected: str, places: set[int]) -> None:
    assert ledger.unrounded(expected) == places


def test_a_column_that_is_a_sum_or_an_average_and_nothing_else(ledger: Ledger) -> None:
    sql = GROUPED.format("sum(id)::double as a, avg(amount) as b, sum(id) - 1 as c, max(id) as d, coalesce(AVG(id), 0)")
    assert ledger.summed(sql) == (1, 2, 5)
    assert ledger.summed("select 1.5 as a union all select 2.5") == ()


def test_what_went_in_is_of_its_own_family(ledger: Ledger) -> None:
    sql = GROUPED.format("sum(amount::double)::decimal(18, 2) as total, avg(amount) as mean")
    assert ledger.table(sql).families == ("text", "number", "float")
    least = ledger.extreme(sql, "min")
    assert (least.columns, least.families) == (("account", "total", "mean"), ("text", "float", "number"))


def test_the_least_and_the_most_that_went_into_a_sum(ledger: Ledger) -> None:
    sql = GROUPED.format("sum(amount)::double as total, avg(id) as mean, count(*) as n, min(id) as first")
    least, most = ({row[0]: row[1:] for row in ledger.extreme(sql, name).rows} for name in ("min", "max"))
    (whole,) = [row[1:] for row in ledger.table(sql).rows if row[0] == "a0"]
    assert least["a0"][2:] == most["a0"][2:] == whole[2:], "what is no sum is as it was"
    ids = [int(row[0] or 0) for row in ledger.table("select id from ledger where account = 'a0'").rows]
    assert (least["a0"][1], most["a0"][1]) == (str(min(ids)), str(max(ids)))
    assert float(least["a0"][0] or 0) < float(most["a0"][0] or 0) < float(whole[0] or 0)


def test_a_query_with_another_function_leaves_the_first_as_it_was(ledger: Ledger) -> None:
    asked = ledger._tree(GROUPED.format("sum(amount) as total"))
    before = copy.deepcopy(asked)
    assert syntax.instead(asked, "min") != before == asked


@pytest.mark.parametrize(
    ("sql", "folds"),
    [
        ("select id, account from ledger", False),
        ("select id, upper(account) || 'x' as a, greatest(id, 1) as g from ledger where id > 3", False),
        ("select l.id from ledger l join (values (1)) v(id) on l.id = v.id", False),
        ("select id from ledger union all select id from ledger", False),
        ("select id, case when amount > 5 then 'big' else 'small' end as size from ledger order by 1 limit 5", False),
        ("select account, count(*) as n from ledger group by account", True),
        ("select account from ledger group by account", True),
        ("select max(id) as m from ledger", True),
        ("select MAX(id) as m from ledger", True),
        ("select account, sum(amount) as s from ledger group by all", True),
        ("select distinct account from ledger", True),
        ("select distinct on (account) account, id from ledger", True),
        ("select id, row_number() over (order by id) as n from ledger", True),
        ("select id from ledger qualify row_number() over (partition by account) = 1", True),
        ("with t as (select account, count(*) as n from ledger group by 1) select * from t", True),
        ("select id from ledger where amount > (select avg(amount) from ledger)", True),
        ("select id from ledger union select id from ledger", True),
        ("select id from ledger intersect select id from ledger", True),
        ("select string_agg(account) as a from ledger", True),
        ("select count_if(id > 3) as n from ledger", True),
    ],
)
def test_what_folds_records_is_an_aggregate(ledger: Ledger, sql: str, folds: bool) -> None:
    assert ledger.aggregates(sql) is folds


@pytest.mark.parametrize(
    ("expected", "distinct"),
    [
        ("select distinct id, amount from ledger where id > 3 order by id", True),
        ("select id, amount from ledger", False),
        ("select distinct on (account) account, amount from ledger", False),
        ("select distinct account, sum(amount) as total from ledger group by account", False),
        ("select distinct account, count(*) over (partition by account) as n from ledger", False),
        ("select distinct account, amount from ledger limit 3", False),
        ("select distinct account from (select account from ledger)", False),
        ("select account from ledger union select account from ledger", False),
    ],
)
def test_rows_of_one_record_each_and_there_once(ledger: Ledger, expected: str, distinct: bool) -> None:
    assert ledger.distinct(expected) is distinct
