"""`expected` over the ledger: exact, closed to the world, bounded, and with words for every mistake."""

from __future__ import annotations

import functools
import json
import math
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import ledger as queries
from harness.checkers.cells import canonical
from harness.errors import HarnessError, Interrupted, UsageError
from harness.ledger import OWN_COLUMNS, Ledger, Source, records, syntax
from harness.run_folder import database, ledger
from harness.scenario.watermark import Watermark
from harness.snapshot import Batch
from tests.folders import COLUMNS, values

SHAPE = tuple((c["name"], c["type"], c["expression"]) for c in COLUMNS)


def write(path: Path, records: list[tuple[int, int, bytes | None, bytes | None]]) -> Path:
    """A source.parquet of (partition, offset, key, value)."""
    rows = [(p, o, 1_700_000_000_000 + o, k, v, n) for n, (p, o, k, v) in enumerate(records)]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in ledger.SOURCE]
    arrays = [pa.array(column, type=f.type) for column, f in zip(columns, ledger.SOURCE, strict=True)]
    ledger.write_source(path, [pa.record_batch(arrays, schema=ledger.SOURCE)])
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Twenty records in two partitions; offsets with holes, as transactions leave them."""
    records = [(r["id"] % 2, r["id"] * 3, str(r["id"]).encode(), json.dumps(r).encode()) for r in values(20)]
    return write(tmp_path / "source.parquet", [*records])


def opened(source: Path, **changes: Any) -> Ledger:
    return Ledger(Source(**{"parquet": source, "columns": SHAPE, **changes}), where="scenario `x`")


@pytest.fixture
def db(source: Path) -> Iterator[Ledger]:
    with opened(source) as made:
        yield made


@pytest.mark.parametrize(
    "table",
    [
        "query('select random() as r, now() as n')",
        "json_execute_serialized_sql(json_serialize_sql('select uuid() as u'))",
        "duckdb_settings()",
        "duckdb_memory()",
        "read_csv('/etc/hostname')",
        "read_text('/etc/hostname')",
    ],
)
def test_a_table_that_is_not_made_of_its_arguments_is_refused(db: Ledger, table: str) -> None:
    with pytest.raises(UsageError, match="which is not made of its arguments"):
        db.table(f"select * from {table}")


def test_a_table_is_refused_whose_arguments_are_made_of_chance(db: Ledger) -> None:
    with pytest.raises(UsageError, match="asks random, which answers otherwise each time"):
        db.table("select * from range((100 * random())::bigint)")


def test_rows_are_canonical_and_columns_have_families(db: Ledger) -> None:
    table = db.table("select id, account, amount from ledger where id < 3")
    assert table.columns == ("id", "account", "amount")
    assert table.types == ("BIGINT", "VARCHAR", "DECIMAL(12,2)")
    assert table.families == ("number", "text", "number")
    assert sorted(table.rows) == [("0", "a0", "0"), ("1", "a1", "1.01"), ("2", "a2", "2.02")]


def test_the_ledger_has_the_workloads_columns_and_its_own(db: Ledger) -> None:
    assert db.columns() == ("id", "account", "amount", *OWN_COLUMNS)
    row = db.table("select _partition, _offset, _timestamp_ms, _batch, value, key from ledger where id = 5").rows[0]
    assert row[:4] == ("1", "15", "1700000000015", None)
    assert (json.loads(str(row[4]))["id"], row[5]) == (5, "5")


def test_a_workloads_column_may_be_called_key(source: Path) -> None:
    shape = (("key", "BIGINT", "cast(key as bigint) + 100"), ("Value", "VARCHAR", "key || '!'"))
    with opened(source, columns=shape) as db:
        assert db.columns() == ("key", "Value", "_partition", "_offset", "_timestamp_ms", "_batch")
        assert db.table('select key, "Value" from ledger where _offset = 3').rows == [("101", "1!")]


def test_batches_come_from_ranges(source: Path) -> None:
    batches = [
        Batch(batch=0, ranges={0: (0, 12), 1: (0, 15)}, committed=True),
        Batch(batch=1, ranges={0: (12, 12), 1: (15, 16)}, committed=True),
        Batch(batch=2, ranges={0: (12, 30)}, committed=False),
    ]
    with opened(source, batches=batches) as db:
        rows = db.table("select _batch, _partition, list_sort(list(id))::varchar from ledger group by all").rows
        assert set(rows) == {
            ("0", "0", "[0, 2]"),
            ("0", "1", "[1, 3]"),
            ("1", "1", "[5]"),
            ("2", "0", "[4, 6, 8]"),
            (None, "0", "[10, 12, 14, 16, 18]"),
            (None, "1", "[7, 9, 11, 13, 15, 17, 19]"),
        }
        assert db.batches() == (0, 1, 2)
        assert [len(db.table("select id from ledger", batch=n).rows) for n in (0, 1, 2, 9)] == [4, 1, 3, 0]
        assert len(db.table("select id from ledger").rows) == 20


def test_overlapping_batches_never_double_a_record(source: Path) -> None:
    batches = [Batch(batch=n, ranges={0: (0, 60), 1: (n, 60 - n)}, committed=True) for n in range(3)]
    with opened(source, batches=[*batches, *batches]) as db:
        assert db.size() == 20


def test_a_view_that_doubles_a_record_is_refused(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    careless = records._TAKEN.replace("asof left join", "left join")
    monkeypatch.setattr(records, "_TAKEN", careless)
    batches = [Batch(batch=n, ranges={0: (0, 60)}, committed=True) for n in range(2)]
    with pytest.raises(HarnessError, match="the view of scenario `x` has 30 records, its source 20"):
        opened(source, batches=batches)


def test_only_records_that_are_committed_count(source: Path) -> None:
    with opened(source, committed={0: 12}) as db:
        assert sorted(db.table("select id from ledger", committed=True).rows) == [("0",), ("2",)]
        assert (db.size(committed=True), db.size()) == (2, 20)
        assert db.table("select count(*) as n from ledger").rows == [("20",)]
    with opened(source, committed={}) as db:
        assert db.size(committed=True) == 0
    with opened(source) as db:
        assert db.size(committed=True) == 20


def test_origins_name_record_and_batch(source: Path) -> None:
    with opened(source, batches=[Batch(batch=4, ranges={0: (0, 7)}, committed=True)]) as db:
        out = list(db.origins(("id", "amount")))
    assert out[:2] == [(("0", "0"), 0, 0, 4), (("2", "2.02"), 0, 6, 4)]
    assert out[-1] == (("19", "19.19"), 1, 57, None)
    assert len(out) == 20


def test_an_empty_source_is_no_mistake(tmp_path: Path) -> None:
    with opened(write(tmp_path / "s.parquet", [])) as db:
        assert (db.size(), db.table("select id from ledger").rows) == (0, [])


def test_null_keys_and_values_stay_null(tmp_path: Path) -> None:
    with opened(write(tmp_path / "s.parquet", [(0, 0, None, None)])) as db:
        assert db.table("select id, value, key from ledger").rows == [(None, None, None)]


@pytest.mark.parametrize(
    ("expression", "family", "text"),
    [
        ("9007199254740993::bigint", "number", "9007199254740993"),
        ("170141183460469231731687303715884105727::hugeint", "number", "170141183460469231731687303715884105727"),
        ("340282366920938463463374607431768211455::uhugeint", "number", "340282366920938463463374607431768211455"),
        ("1.10::decimal(38,10)", "number", "1.1"),
        ("sum(12345678901234567890::hugeint)", "number", "24691357802469135780"),
        ("0.1::double", "float", "0.1"),
        ("0.1::float", "float", "0.10000000149011612"),
        ("'-0.0'::double", "float", "-0.0"),
        ("'nan'::double", "float", "nan"),
        ("'inf'::double", "float", "inf"),
        ("1e20::double", "float", "1e+20"),
        ("5e-324::double", "float", "5e-324"),
        ("true", "bool", "true"),
        ("'x '::varchar", "text", "x "),
        ("'a'::enum('a', 'b')", "text", "a"),
        ("timestamp '2026-01-31 10:00:00.5'", "timestamp", "2026-01-31T10:00:00.500000"),
        ("'2026-01-31 10:00:00.123456789'::timestamp_ns", "timestamp", "2026-01-31T10:00:00.123456789"),
        ("'2026-01-31 10:00:00'::timestamp_s", "timestamp", "2026-01-31T10:00:00.000000"),
        ("timestamp '0044-03-15 (BC) 10:00:00'", "timestamp", "0044-03-15T10:00:00.000000 BC"),
        ("timestamptz '0044-03-15 (BC) 10:00:00+00'", "instant", "0044-03-15T10:00:00.000000Z BC"),
        ("timestamptz '2026-01-31 10:00:00+02'", "instant", "2026-01-31T08:00:00.000000Z"),
        ("date '2026-01-31'", "date", "2026-01-31"),
        ("time '10:11:12.5'", "time", "10:11:12.500000"),
        ("'\\x00\\xFF'::blob", "bytes", "00ff"),
        ('\'{"b": 1.0, "a": 2}\'::json', "json", '{"a":2,"b":1}'),
        ("'ABCDEF00-0000-0000-0000-000000000001'::uuid", "uuid", "abcdef00-0000-0000-0000-000000000001"),
        ("null::bigint", "number", None),
    ],
)
def test_every_type_arrives_exactly(db: Ledger, expression: str, family: str, text: str | None) -> None:
    table = db.table(f"select {expression} as x from ledger where id < 2")
    assert table.families == (family,)
    assert set(table.rows) == {(text,)}


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database as anybody opens one: that takes longer than what is asked of it."""
    with duckdb.connect() as connection:
        yield connection


@given(number=st.floats())
def test_a_double_arrives_with_every_bit(plain: duckdb.DuckDBPyConnection, number: float) -> None:
    (text,) = plain.execute("select cast(?::double as varchar)", [number]).fetchall()[0]
    back = float(str(canonical(text, "float")))
    assert (
        math.isnan(back) if math.isnan(number) else (back, math.copysign(1, back)) == (number, math.copysign(1, number))
    )


@pytest.mark.parametrize("kind", ["[1]", "{'a': 1}", "interval 1 day", "'1'::bit", "'10:00+01'::timetz"])
def test_types_without_an_exact_text_are_refused_by_name(db: Ledger, kind: str) -> None:
    with pytest.raises(UsageError, match=r"has a column x of type .* which cannot be compared exactly"):
        db.table(f"select {kind} as x from ledger")


def test_a_null_is_of_the_type_that_duckdb_gives_it(db: Ledger) -> None:
    """DuckDB 1 makes it an INTEGER, DuckDB 2 leaves it without a type."""
    asked = "select null as x from ledger where id < 1"
    if db.shape(asked)[1] == ("INTEGER",):
        assert db.table(asked).rows == [(None,)]
    else:
        with pytest.raises(UsageError, match=r'a column x of type "NULL", which cannot be compared exactly'):
            db.table(asked)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select idd from ledger", "Referenced column"),
        ("selec", "syntax error"),
        ("", "no query"),
        ("select 1 as a; select 2 as b", "2 statements"),
        ("select id from ledger; drop table records", "Only SELECT"),
        ("drop table records", "Only SELECT"),
        ("set memory_limit = '1GB'", "Only SELECT"),
        ("copy (select 1) to '/tmp/onceproof-must-not-be-there'", "Only SELECT"),
        ("select * from '/etc/hostname'", ""),
        ("select * from source_is_no_python_variable", "does not exist"),
        ("select getenv('HOME') as h", "getenv"),
        ("select cast(account as bigint) as x from ledger", "Could not convert"),
    ],
)
def test_a_wrong_query_is_refused_with_duckdbs_words(db: Ledger, sql: str, words: str) -> None:
    with pytest.raises(UsageError) as refusal:
        db.table(sql)
    assert str(refusal.value).startswith("`expected` of scenario `x` is no query that DuckDB can run: ")
    assert words in str(refusal.value)
    assert "columns of `ledger`: id, account, amount" in str(refusal.value)
    assert db.size() == 20


@pytest.mark.parametrize(
    "sql",
    [
        "select id from ledger;",
        "select id from ledger ; ",
        "select id from ledger -- all",
        "from ledger select id",
        "with l as (select id from ledger) select * from l",
        "(select id from ledger)",
    ],
)
def test_queries_may_be_written_as_one_likes(db: Ledger, sql: str) -> None:
    assert len(db.table(sql).rows) == 20


def test_columns_without_names_or_with_one_name_can_be_read(db: Ledger) -> None:
    table = db.table("select id, id, count(*) from ledger where id = 1 group by all")
    assert (table.columns, table.rows) == (("id", "id", "count_star()"), [("1", "1", "1")])


def test_a_column_is_called_as_the_query_calls_it(db: Ledger) -> None:
    assert db.table('select id as "ID", account as Account from ledger').columns == ("ID", "Account")


def test_an_endless_query_is_stopped(db: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "SECONDS_MAX", 0.2)
    endless = "with recursive r as (select 1 as n union all select n + 1 from r where n > 0) select max(n) as n from r"
    with pytest.raises(UsageError, match=r"it ran longer than 0\.2 s"):
        db.table(endless)


def test_a_signal_ends_an_endless_query_and_the_next_one_is_answered(db: Ledger) -> None:
    endless = "with recursive r as (select 1 as n union all select n + 1 from r where n > 0) select max(n) as n from r"

    def stop(number: int, frame: object) -> None:
        raise Interrupted("interrupted")

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(Interrupted):
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            db.table(endless)
        assert db.table("select count(*) as n from ledger").rows == [("20",)]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_column_that_does_not_fit_the_records_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "s.parquet", [(0, 0, None, b'{"id": "x"}')])
    with pytest.raises(
        UsageError, match=r"asked the records of scenario `x` for the columns id, account, amount; DuckDB"
    ):
        opened(path)
    bad = write(tmp_path / "b.parquet", [(0, 0, None, b"\xff\xfe")])
    with pytest.raises(UsageError, match="DuckDB said"):
        opened(bad)


def test_no_source_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="asked for the source as read back"):
        opened(tmp_path / "none.parquet")


@pytest.mark.parametrize(
    ("sql", "alone"),
    [
        ("select id, account from ledger", True),
        ("select id, upper(account) as a from ledger where id > 3 order by id", True),
        ("select id from ledger order by id limit 5", False),
        ("select id from ledger l where not exists (from ledger x where x.id > l.id)", False),
        ("select a.id from ledger a join ledger b on a.id = b.id + 1", False),
        ("select id from ledger union all select id from ledger", False),
        ("with t as (from ledger) select id from t", False),
        ("select id from (select * from ledger)", False),
        ("select id from ledger using sample 10 rows", False),
        ("select count(*) as n from ledger", False),
        ("select distinct id from ledger", False),
        ("select id, lag(id) over (order by id) as before from ledger", False),
        ("select 1 as id", False),
    ],
)
def test_a_plain_query_takes_each_record_by_itself(db: Ledger, sql: str, alone: bool) -> None:
    assert db.plain(sql) is alone


AT = "timestamp '2026-01-01' + id * interval '1 second'"


@pytest.mark.parametrize(
    "expression",
    [AT, f"coalesce({AT}, error('no time'))", f"(select max(t) from unnest([{AT}]) as l(t))", f"{AT} -- t"],
)
def test_a_time_of_each_record(db: Ledger, expression: str) -> None:
    assert db.no_time(expression) == ""
    assert len(db.timed(Watermark(of=AT, closes=expression))) == 20


def test_several_rows_of_a_record_are_refused_where_no_name_tells_them(
    db: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syntax, "several", lambda tree, functions: "")
    assert db.no_time(f"unnest([{AT}, {AT}])") == "gives 2 rows for one record. Say one time of each record"
    assert db.no_time(f"unnest([{AT}][2:])") == "gives 0 rows for one record. Say one time of each record"
    some = Watermark(of=AT, closes=f"unnest(case when id < 15 then [{AT}] else [{AT}, {AT}] end)")
    with pytest.raises(UsageError, match=r"scenario `x` give 25 rows for 20 records\. Say one time of each record"):
        db.timed(some)


def test_over_no_record_one_of_nulls_stands_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "several", lambda tree, functions: "")
    with Ledger(Source(parquet=None, columns=SHAPE), where="scenario `x`") as nothing:
        assert nothing.no_time(AT) == ""
        assert nothing.no_time(f"unnest([{AT}, {AT}])").startswith("gives 2 rows")


def test_two_ledgers_at_once_do_not_see_each_other(source: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.parquet", [(0, 0, b"7", json.dumps(values(8)[7]).encode())])
    with opened(source) as one, opened(other) as two:
        counts = [each.table("select count(*) as n from ledger").rows for each in (one, two, one)]
        assert counts == [[("20",)], [("1",)], [("20",)]]
        tables = "select count(*) from duckdb_tables() where table_name <> 'records'"
        assert one._db.execute(tables).fetchall() == [(0,)]
    with opened(other) as again:
        assert again.size() == 1


def test_a_database_that_broke_is_replaced(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB answers nothing any more after an internal error of its own."""

    class Broken:
        def cursor(self) -> Broken:
            return self

        def execute(self, sql: str) -> Broken:
            raise duckdb.FatalException("database has been invalidated")

    real = database._database.__wrapped__
    made: list[object] = [Broken()]
    monkeypatch.setattr(database, "_database", functools.cache(lambda process: made.pop() if made else real(process)))
    with opened(source) as db:
        assert db.size() == 20
    assert not made
