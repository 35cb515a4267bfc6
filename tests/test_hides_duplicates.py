"""Whether a query shows it when a row of its tables is there twice: tried on a real Postgres, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg2
import pytest

from harness.checkers.schema_check import folded, folding_note
from harness.components.postgres.process import Postgres
from harness.components.postgres.sink import hides_duplicates
from harness.scenario import Sink
from harness.session.session import Session
from harness.sinks.reading import read, since, store, tried
from harness.sinks.table import SinkColumn, SinkTable, load
from tests.provided import Own, at, dsn, parts_of

TABLES = (
    "create table payments (id int primary key, account text not null, amount numeric(9,2), unique (id, account))",
    "create table countries (account text primary key, country text)",
    "create table notes (id int, note text)",
    "insert into countries select 'a' || n, 'c' || n % 2 from generate_series(0, 9) as n",
    "create view folding_view as select distinct account, amount from payments",
    "create view plain_view as select account, amount from payments",
    "create view view_of_view as select account from folding_view",
)
ROWS = "insert into payments select n, 'a' || n % 10, n * 1.25 from generate_series(1, 200) as n"


def sink(target: str, **changes: Any) -> Sink:
    return Sink(kind="postgres", target=target, **changes)


def table(folds: bool | None, words: str = "why") -> SinkTable:
    return SinkTable(name="n", kind="postgres", target="t", folds=folds, folding=words)


QUERY = "select distinct id from payments"
ID = SinkColumn(name="id", type="integer", family="number")


@pytest.mark.parametrize(
    ("says", "folds", "untested", "note"),
    [
        (False, True, "is a query that folds equal rows: why. Read the sink by a query that keeps every row, or", ""),
        (False, False, "", ""),
        (False, None, "folds equal rows could not be tried: why. Read the sink as a table, or by a query that", ""),
        (True, True, "", "the sink's reader folds equal rows: a repetition does not show in it"),
        (True, None, "", "the sink's reader folds equal rows: a repetition does not show in it"),
        (True, False, "", ""),
    ],
)
def test_what_a_verdict_says_of_it(says: bool, folds: bool | None, untested: str, note: str) -> None:
    one = sink(QUERY, folds=says)
    assert (f"postgres {QUERY} {untested}" if untested else "") in folded(one, table(folds))
    assert bool(folded(one, table(folds))) == bool(untested)
    assert folding_note(one, table(folds)) == (f"postgres {QUERY}: {note}" if note else "")


def test_a_reader_that_keeps_what_it_drops_shows_a_repetition() -> None:
    said = folding_note(sink(QUERY, folds=True), replace(table(True), dropped=[]))
    assert said.endswith("the sink's reader folds equal rows: a repetition shows only in what its reader dropped")


def test_what_was_not_tried_has_no_note() -> None:
    assert (folding_note(sink("payments"), table(None, "")), folded(sink("payments"), table(None, ""))) == ("", "")
    assert folded(sink(QUERY), table(True), name="the second").startswith("the second is a query that folds")
    assert folding_note(sink(QUERY, folds=True), table(True), name="the second").startswith("the second: ")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with Session() as session:
        made = Postgres(session, logs=tmp_path_factory.mktemp("logs"))
        made.start()
        yield made
        made.stop()
        made.close()


@pytest.fixture
def own(server: Postgres, request: pytest.FixtureRequest) -> Iterator[Own]:
    with parts_of(server, request) as made:
        run(made, *TABLES)
        yield made


def run(own: Own, *statements: str) -> list[tuple[Any, ...]]:
    with closing(psycopg2.connect(dsn(own))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []


def answer(own: Own, target: str, *written: str) -> tuple[bool | None, str]:
    """What the trial says of a sink, after a run that wrote these rows."""
    one = sink(target)
    after = since([one], own)
    run(own, *(written or (ROWS,)))
    with TemporaryDirectory() as folder:
        store(Path(folder), 0, one, own, after=after)
        out = load(Path(folder), 0)
    assert out is not None
    whole = read(one, own)
    assert (out.columns, len(out.rows), out.unique) == (whole.columns, len(whole.rows), whole.unique)
    return out.folds, out.folding


FOLDS = [
    "select distinct account, amount from payments",
    "select account, max(amount) as amount from payments group by account",
    "select account, count(distinct id) as n from payments group by account",
    "select id, account from payments union select id, account from payments",
    "select id, min(account) as account from payments group by id -- by id;",
    "with one as (select distinct id, amount from payments) select count(*) as n, sum(amount) as total from one",
    "select country, amount from countries join (select distinct account, amount from payments) x using (account)",
    "select account from folding_view",
    "folding_view",
    "select * from view_of_view",
]
SEES = [
    "select id, account from payments",
    "select account, count(*) as n, sum(amount) as total from payments group by account",
    "select account, avg(amount) as mean from payments group by account",
    "select id from payments where id = 137",
    "select p.id, c.country from payments p join countries c using (account)",
    "select p.id from payments p where account in (select account from countries)",
    "select id, row_number() over (partition by id) as n from payments",
    "select * from plain_view",
    "plain_view",
    "select id as a, id as a, 'x' from payments where amount > 3",
]


@pytest.mark.stack
@pytest.mark.parametrize("target", FOLDS)
def test_a_query_that_folds_equal_rows_is_found(own: Own, target: str) -> None:
    assert answer(own, target) == (True, "a row of payments that is there twice does not show in it")


@pytest.mark.stack
@pytest.mark.parametrize("target", SEES)
def test_a_query_that_shows_a_doubled_row_is_found(own: Own, target: str) -> None:
    assert answer(own, target) == (False, "a row of payments that is there twice shows in it")


EARLY, LATE = "from payments where id <= 150", "from payments where id > 150"
FIRST = "those from (1,a1,1.25) to (145,a5,181.25)"
PARTLY = [
    (f"select distinct id, account {EARLY} union all select id, account {LATE}", "(1,a1,1.25)"),
    (f"select id {EARLY} union all select distinct id {LATE}", "(153,a3,191.25)"),
    ("select distinct id from payments where id % 3 = 0 union all select id from payments where id % 3 > 0",
     "(9,a9,11.25)"),
    (f"select account, max(amount) as amount {EARLY} group by account union all select account, amount {LATE}",
     "(145,a5,181.25)"),
    (f"select id / 40 as n, max(amount) as amount {EARLY} group by 1 union all select id, amount {LATE}", FIRST),
    (f"select distinct account {EARLY} union all select account {LATE}", FIRST),
]  # fmt: skip


@pytest.mark.stack
@pytest.mark.parametrize(("target", "example"), PARTLY)
def test_a_query_that_folds_a_part_of_its_rows_is_found(own: Own, target: str, example: str) -> None:
    words = f"of payments some rows that are there twice show in it and others do not, such as {example}"
    assert answer(own, target) == (True, words)


LOADS = (
    "create table loads (seq bigserial, id int, amount int, loaded timestamptz default clock_timestamp(), "
    "event_time timestamp, attempt int default 1)",
    "insert into loads (id, amount, event_time) "
    "select n, n, timestamp '2026-01-01' + n * interval '1 s' from generate_series(1, 60) as n",
)
NEWEST = [
    "select id, amount from loads l where seq = (select max(seq) from loads o where o.id = l.id)",
    "select id, amount from (select *, rank() over (partition by id order by loaded desc) r from loads) x where r = 1",
]
EVERY = [
    "select id, amount, event_time from loads where attempt = 1",
    "select id, event_time from loads l where event_time = (select max(event_time) from loads o where o.id = l.id)",
]


@pytest.mark.stack
@pytest.mark.parametrize(("target", "folds"), [*((each, True) for each in NEWEST), *((each, False) for each in EVERY)])
def test_a_query_that_shows_the_newest_row_of_each_key_folds(own: Own, target: str, folds: bool) -> None:
    said = answer(own, target, *LOADS)
    assert said[0] is folds
    assert ("of loads a row that comes again with a new seq and loaded" in said[1]) is folds


SEEN = (
    "create table seen (id int, amount int, batch text, at_ms bigint, loaded timestamptz default clock_timestamp(), "
    "tag uuid default gen_random_uuid())",
    "insert into seen (id, amount, batch, at_ms) select n, n % 7, 'a', n from generate_series(1, 60) as n",
)
AGAIN = "insert into seen (id, amount, batch, at_ms) select id, amount, 'b', at_ms + 1000 from seen where id > 50"


def latest(column: str, shown: str = "id, amount") -> str:
    ranked = f"select *, rank() over (partition by id order by {column} desc) as place from seen"
    return f"select {shown} from ({ranked}) as ranked where place = 1"


@pytest.mark.stack
@pytest.mark.parametrize(("column", "shown"), [("loaded", "id, loaded"), ("tag", "id, amount"), ("tag", "id, tag")])
def test_a_query_that_shows_what_the_table_fills_in_folds_as_well(own: Own, column: str, shown: str) -> None:
    folds, words = answer(own, latest(column, shown), *SEEN)
    assert folds is True and words.startswith("of seen a row that comes again with a new ")


@pytest.mark.stack
@pytest.mark.parametrize("column", ["at_ms", "batch"])
def test_what_the_program_gives_anew_is_found_in_what_came_twice(own: Own, column: str) -> None:
    """A number or name of the program's own says nothing until a row has come again."""
    assert answer(own, latest(column), *SEEN)[0] is False
    folds, words = answer(own, latest(column), AGAIN)
    assert folds is True and words.startswith("seen holds rows twice, but for columns that it does not show")
    assert answer(own, "select id, amount from seen", "update seen set batch = 'c' where id = 1")[0] is False
    assert answer(own, "select id, amount from seen where batch = 'b'", "insert into seen (id) values (0)")[0] is False


HOURS = (*LOADS, "update loads set loaded = clock_timestamp() - (id / 20) * interval '1 hour'")


@pytest.mark.stack
@pytest.mark.parametrize("hidden", ["loaded < clock_timestamp()", "loaded > clock_timestamp() - interval '5 hours'"])
def test_a_query_that_looks_at_the_clock_does_not_fold(own: Own, hidden: str) -> None:
    said = answer(own, f"select id, amount from loads where {hidden}", *HOURS)
    assert said == (False, "a row of loads that is there twice shows in it")
    newest = f"select distinct on (id) id, amount from loads where {hidden} order by id, loaded desc"
    assert answer(own, newest, "drop table loads", *HOURS)[0] is True


@pytest.mark.stack
def test_rows_that_are_there_twice_already_hide_no_fold(own: Own) -> None:
    run(
        own,
        "alter table payments drop constraint payments_pkey",
        "alter table payments drop constraint payments_id_account_key",
    )
    folds, words = answer(own, PARTLY[0][0], ROWS, ROWS)
    assert folds is True and words.endswith("such as (1,a1,1.25)")


@pytest.mark.stack
@pytest.mark.parametrize(
    "target",
    [
        "select id from payments where id > 150",
        "select id from payments where id > 199",
        "select c.account, p.id from countries c left join payments p on p.account = c.account and p.id > 120",
        "select id from payments p where not exists "
        "(select 1 from payments l where l.account = p.account and l.id > p.id)",
        "select account, sum(case when id > 100 then amount else 0 end) as total from payments group by account",
    ],
)
def test_rows_that_make_no_difference_do_not_fold(own: Own, target: str) -> None:
    assert answer(own, target) == (False, "a row of payments that is there twice shows in it")


@pytest.mark.stack
def test_a_table_shows_its_rows_as_they_are(own: Own) -> None:
    assert answer(own, "payments") == (None, "")
    assert answer(own, "select 1 as x from nothing", "select 1") == (None, "")
    console = SinkTable(name="c", kind="console", target="console")
    assert tried(Sink(kind="console", target=""), console, own, after={}) is console


@pytest.mark.stack
def test_nothing_is_left_of_the_trial(own: Own) -> None:
    run(own, ROWS)
    before = run(own, "select count(*), sum(amount) from payments")
    relations = "select relname from pg_class where relname ~ 'onceproof|payments|_view' order by 1"
    there = run(own, relations)
    assert answer(own, QUERY, "update payments set amount = amount")[0] is True
    assert run(own, "select count(*), sum(amount) from payments") == before
    assert run(own, relations) == there
    others = "select count(*) from pg_stat_activity where application_name = 'onceproof sink'"
    assert run(own, others) == [(0,)]


NOTE = "insert into notes select n, 'x' from generate_series(1, 9) as n"


@pytest.mark.stack
def test_of_two_tables_that_the_run_wrote_the_one_that_is_folded_is_named(own: Own) -> None:
    half = "select p.id, n.note from payments p join (select distinct id, note from notes) n using (id)"
    assert answer(own, half, ROWS, NOTE) == (True, "a row of notes that is there twice does not show in it")
    whole = "select p.id, n.note from payments p join notes n using (id)"
    assert answer(own, whole, NOTE, "update payments set amount = 1") == (
        False,
        "a row of payments, notes that is there twice shows in it",
    )


@pytest.mark.stack
def test_rows_that_setup_wrote_are_not_doubled_and_rows_without_effect_say_nothing(own: Own) -> None:
    query = "select n.id from notes n where exists (select 1 from countries where account = 'a' || n.id)"
    assert answer(own, query, NOTE) == (False, "a row of notes that is there twice shows in it")
    run(own, "delete from notes")
    outer = "select n.id, p.account from notes n left join payments p on p.id = n.id + 1000"
    assert answer(own, outer, ROWS, NOTE) == (False, "a row of notes that is there twice shows in it")


@pytest.mark.stack
@pytest.mark.parametrize(
    ("target", "written", "why"),
    [
        ("select distinct account from countries", ROWS, "none of the tables that it is seen to read holds a row that"),
        ("select 1 as x", ROWS, "none of the tables that it is seen to read holds a row that the run wrote"),
        (QUERY, "select 1", "none of the tables that it is seen to read holds a row that the run wrote"),
        ("select distinct id from payments where id < 0", ROWS, "it shows no row of the copies"),
        ("select distinct id, random() as x from payments", ROWS, "its rows differ from one reading to the next"),
        (
            "select c.account, p.id from countries c left join payments p on p.id = -1",
            ROWS,
            "no row of payments makes any difference to it",
        ),
    ],
)
def test_what_cannot_be_tried_says_why(own: Own, target: str, written: str, why: str) -> None:
    folds, words = answer(own, target, written)
    assert folds is None and words.startswith(why)


@pytest.mark.stack
def test_a_table_that_is_named_with_its_schema_cannot_be_shadowed(own: Own) -> None:
    ((schema,),) = run(own, "select current_schema()")
    folds, words = answer(own, f"select distinct id from {schema}.payments")
    assert (folds, words) == (None, f"{schema}.payments is named with its schema")
    run(own, "delete from payments")
    folds, words = answer(own, f"{schema}.folding_view")
    assert (folds, words) == (None, f"{schema}.payments is named with its schema")


@pytest.mark.stack
def test_who_may_not_make_temporary_tables_cannot_try_it(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    run(own, ROWS)

    def refused(*_: object, **__: object) -> None:
        raise psycopg2.errors.InsufficientPrivilege("permission denied to create temporary tables\nin database x")

    monkeypatch.setattr("harness.components.postgres.sink.column_types.as_view", refused)
    out = tried(sink(QUERY), replace(table(None, ""), columns=(ID,)), own, after={})
    words = "there is no privilege to try it: permission denied to create temporary tables in database x"
    assert (out.folds, out.folding) == (None, words)


@pytest.mark.stack
def test_a_query_that_would_write_cannot_be_tried(own: Own) -> None:
    run(own, ROWS)
    more = sink("select 1) as sink; commit; delete from payments; commit; --")
    out = tried(more, replace(table(None, ""), columns=(ID,)), own, after={})
    assert out.folds is None and out.folding.startswith("Postgres said: ")
    assert run(own, "select count(*) from payments") == [(200,)]


@pytest.mark.stack
def test_it_ends_when_the_time_is_up(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hides_duplicates, "WITHIN_S", 0.0)
    assert answer(own, QUERY) == (None, "it took longer than 0 s")
    monkeypatch.setattr(hides_duplicates, "WITHIN_S", 0.5)
    endless = sink("select id from payments where id < (select count(*) from generate_series(1, 100000000000))")
    out = tried(endless, replace(table(None, ""), columns=(ID,)), own, after={})
    assert (out.folds, out.folding) == (None, "it took longer than 0.5 s")


@pytest.mark.stack
def test_a_large_table_is_tried_on_its_first_rows(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hides_duplicates, "ROWS_MAX", 50)
    query = "select count(*) as n from (select distinct id from payments) as one having count(*) = 50"
    one = sink(query)
    run(own, ROWS)
    assert read(one, own).rows == []
    out = tried(one, read(one, own), own, after={})
    assert (out.folds, out.folding) == (True, "a row of payments that is there twice does not show in it")


@pytest.mark.stack
def test_single_rows_are_spread_over_the_table(own: Own) -> None:
    # All rows doubled leave the mean as it is, and so does any single one but the last.
    query = "select avg(amount) filter (where id >= 199) as mean from payments"
    assert answer(own, query)[0] is False


@pytest.mark.stack
def test_a_database_that_does_not_answer_has_no_transaction() -> None:
    assert since([sink("t"), Sink(kind="console", target="")], {"postgres": at("host=127.0.0.1 port=1")}) == {}
    assert since([sink("t", part="third")], {}) == {}
