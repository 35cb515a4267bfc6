"""Sinks: kept in the run folder exactly, and read from a real Postgres exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import psycopg2
import psycopg2.extras
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.checkers.cells import Row, canonical
from harness.checkers.compare import compare
from harness.checkers.schema_check import schema_mismatch
from harness.component import SetsUp, component
from harness.components.postgres.process import Postgres
from harness.errors import HarnessError, StackError, UsageError
from harness.ledger import Ledger, Source
from harness.scenario import Sink
from harness.session.session import Session
from harness.sinks import reading
from harness.sinks.reading import busy, mark, read
from harness.sinks.table import SinkColumn, SinkTable, load, save
from harness.wait import until
from harness.workloads import make
from tests import shipped
from tests.laws import FAULTS, good_rows
from tests.limits import examples
from tests.planted import case_of, is_found, plant
from tests.provided import Own, at, dsn, parts_of, shared

COLUMNS = (SinkColumn(name="id", type="bigint", family="number"), SinkColumn(name="é", type="text", family="text"))
CELLS = st.none() | st.text()
NUMBERS = st.none() | (st.integers() | st.decimals()).map(lambda value: canonical(value, "number"))


def table(rows: list[Row]) -> SinkTable:
    return SinkTable(name="postgres t", kind="postgres", target="t", columns=COLUMNS, rows=rows)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(NUMBERS, CELLS)))
def test_any_table_survives_the_run_folder(tmp_path: Path, rows: list[Row]) -> None:
    save(tmp_path, 3, table(rows))
    assert load(tmp_path, 3) == table(rows)


def test_what_lies_in_the_run_folder(tmp_path: Path) -> None:
    save(tmp_path, 0, table([("1", None)]))
    assert sorted(p.name for p in (tmp_path / "sink").iterdir()) == ["0.json", "0.parquet"]
    assert json.loads((tmp_path / "sink" / "0.json").read_text()) == {
        "name": "postgres t",
        "kind": "postgres",
        "target": "t",
        "columns": [
            {"name": "id", "type": "bigint", "family": "number"},
            {"name": "é", "type": "text", "family": "text"},
        ],
        "rows": 1,
        "unreadable": "",
        "absent": False,
        "form": "whole",
        "unique": False,
        "folds": None,
        "folding": "",
        "version": "",
        "note": "",
        "dropped": None,
    }
    assert (tmp_path / "sink" / "0.parquet").stat().st_mode & 0o077 == 0


def test_a_sink_may_have_two_columns_of_one_name_or_none(tmp_path: Path) -> None:
    same = SinkTable(name="n", kind="postgres", target="t", columns=(COLUMNS[0], COLUMNS[0]), rows=[("1", "2")])
    save(tmp_path, 0, same)
    assert load(tmp_path, 0) == same
    none = SinkTable(name="n", kind="postgres", target="t", unreadable="no such table")
    save(tmp_path, 0, none)
    assert load(tmp_path, 0) == none


@pytest.mark.parametrize("folds", [True, False, None])
def test_what_was_tried_on_a_sink_is_kept(tmp_path: Path, folds: bool | None) -> None:
    one = replace(table([("1", "a")]), unique=True, folds=folds, folding="a doubled row of payments does not show")
    save(tmp_path, 0, one)
    assert load(tmp_path, 0) == one


@pytest.mark.parametrize("dropped", [[], [("1", "a"), ("1", None)]])
def test_what_a_reader_has_dropped_is_kept_beside_its_rows(tmp_path: Path, dropped: list[Row]) -> None:
    one = replace(table([("1", "a")]), dropped=dropped)
    save(tmp_path, 0, one)
    assert load(tmp_path, 0) == one
    (tmp_path / "sink" / "0.dropped.parquet").unlink()
    with pytest.raises(HarnessError, match="damaged"):
        load(tmp_path, 0)
    save(tmp_path, 0, replace(one, dropped=[*dropped, ("2", "b")]))
    about = tmp_path / "sink" / "0.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"dropped": len(dropped)}))
    with pytest.raises(HarnessError, match=f"{len(dropped)} were read from the sink"):
        load(tmp_path, 0)


def test_a_sink_of_before_it_was_tried_is_read(tmp_path: Path) -> None:
    save(tmp_path, 0, table([("1", "a")]))
    path = tmp_path / "sink" / "0.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps({name: about[name] for name in about if name not in ("unique", "folds", "folding")}))
    assert load(tmp_path, 0) == table([("1", "a")])
    path.write_text(json.dumps(about | {"folds": "perhaps"}))
    with pytest.raises(UsageError, match="folds"):
        load(tmp_path, 0)


def test_a_sink_that_was_never_saved_is_none(tmp_path: Path) -> None:
    assert load(tmp_path, 0) is None


@pytest.mark.parametrize("name", ["0.parquet", "0.json"])
def test_damage_is_a_clear_error(tmp_path: Path, name: str) -> None:
    save(tmp_path, 0, table([("1", "a")]))
    (tmp_path / "sink" / name).write_text("{}")
    with pytest.raises(HarnessError, match=r"0\.(json|parquet) is damaged.*: .+ Run the scenario again"):
        load(tmp_path, 0)


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "sink").write_text("in the way")
    with pytest.raises(HarnessError, match=r"asked to write .+0\.parquet; saw "):
        save(tmp_path, 0, table([]))


def test_a_console_cannot_be_read_and_says_so() -> None:
    out = read(Sink(kind="console", target=""), {})
    assert (out.rows, out.columns) == ([], ())
    assert out.unreadable.startswith("a console sink cannot be read back")
    assert mark(Sink(kind="console", target=""), {}) == "console"


def test_a_database_that_is_not_there_is_named() -> None:
    sink = Sink(kind="postgres", target="t", part="third")
    with pytest.raises(UsageError, match=r"asked for postgres.third; the run was given postgres, postgres.second"):
        mark(sink, {"postgres": at(), "postgres.second": at(label="postgres.second")})


def test_a_server_that_does_not_answer_is_an_error_of_the_stack() -> None:
    own = {"postgres": at("host=127.0.0.1 port=1 user=x password=geheim-4711")}
    with pytest.raises(StackError, match="asked Postgres to read the sink t; saw") as refusal:
        read(Sink(kind="postgres", target="t"), own)
    assert "geheim-4711" not in str(refusal.value)


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
        yield made


def run(own: Own, *statements: str, label: str = "postgres") -> None:
    with closing(psycopg2.connect(dsn(own, label))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


def put(own: Own, rows: list[Row]) -> None:
    """Make `payments` hold exactly these rows."""
    run(own, "drop table if exists payments", "create table payments (id bigint, account text, amount numeric)")
    with closing(psycopg2.connect(dsn(own))) as connection, connection, connection.cursor() as cursor:
        psycopg2.extras.execute_values(cursor, "insert into payments values %s", rows) if rows else None


def sink(target: str, **changes: Any) -> Sink:
    return Sink(kind="postgres", target=target, **changes)


@pytest.mark.stack
@pytest.mark.parametrize("fault", FAULTS)
def test_all_fourteen_planted_faults_are_found_through_postgres(own: Own, fault: str) -> None:
    rows, found, must = plant(fault)
    put(own, found)
    is_found(rows, read(sink("payments"), own), must)


@pytest.mark.stack
def test_a_shuffled_good_copy_is_no_alarm(own: Own) -> None:
    rows = good_rows(2000)
    shuffled = list(rows)
    Random(3).shuffle(shuffled)
    put(own, shuffled)
    assert list(compare(case_of(rows, read(sink("payments"), own)))) == []


EXACT = [
    ("smallint", "-32768", "number", "-32768"),
    ("integer", "2147483647", "number", "2147483647"),
    ("bigint", "9007199254740993", "number", "9007199254740993"),
    ("bigint", "9007199254740992", "number", "9007199254740992"),
    ("numeric", "9007199254740993.0000000000000000001", "number", "9007199254740993.0000000000000000001"),
    ("numeric(10,4)", "1.5", "number", "1.5"),
    ("numeric", "'NaN'", "number", "NaN"),
    ("numeric", "1e40", "number", "1" + "0" * 40),
    ("real", "0.1", "float", "0.10000000149011612"),
    ("double precision", "0.1", "float", "0.1"),
    ("double precision", "0.1::float8 + 0.2::float8", "float", "0.30000000000000004"),
    ("double precision", "'-0'", "float", "-0.0"),
    ("double precision", "'NaN'", "float", "nan"),
    ("double precision", "'-Infinity'", "float", "-inf"),
    ("double precision", "5e-324", "float", "5e-324"),
    ("text", "'trailing '", "text", "trailing "),
    ("text", "''", "text", ""),
    ("text", "E'Ü\\n\\t\\\\N'", "text", "Ü\n\t\\N"),
    ("varchar(10)", "'x '", "text", "x "),
    ("char(5)", "'x'", "text", "x"),
    ("boolean", "true", "bool", "true"),
    ("boolean", "false", "bool", "false"),
    ("timestamp", "'2026-01-31 10:00:00.123456'", "timestamp", "2026-01-31T10:00:00.123456"),
    ("timestamp", "'infinity'", "timestamp", "infinity"),
    ("timestamp", "'0044-03-15 12:00 BC'", "timestamp", "0044-03-15T12:00:00.000000 BC"),
    ("timestamptz", "'2026-01-31 10:00:00+02'", "instant", "2026-01-31T08:00:00.000000Z"),
    ("date", "'2026-01-31'", "date", "2026-01-31"),
    ("time", "'10:11:12.5'", "time", "10:11:12.500000"),
    ("bytea", "'\\x00ff'", "bytes", "00ff"),
    ("json", '\'{"b": 1.0, "a": [null]}\'', "json", '{"a":[null],"b":1}'),
    ("jsonb", '\'{"b": 12345678901234567890, "a": 1.10}\'', "json", '{"a":1.1,"b":12345678901234567890}'),
    ("uuid", "'ABCDEF00-0000-0000-0000-000000000001'", "uuid", "abcdef00-0000-0000-0000-000000000001"),
    ("mood", "'good'", "text", "good"),
    ("small", "7", "number", "7"),
    ("bigint", "null", "number", None),
    ("text", "null", "text", None),
]


@pytest.mark.stack
@pytest.mark.parametrize(("kind", "literal", "family", "cell"), EXACT)
def test_every_type_arrives_exactly(own: Own, kind: str, literal: str, family: str, cell: str) -> None:
    run(
        own,
        "create type mood as enum ('good', 'bad')",
        "create domain small as int check (value < 10)",
        f"create table one (x {kind})",
        f"insert into one values ({literal})",
    )
    there = read(sink("one"), own)
    assert there.unreadable == ""
    assert (there.columns[0].name, there.columns[0].family, there.rows) == ("x", family, [(cell,)])


MUTANTS = [
    ("bigint", "9007199254740992", "9007199254740993"),
    ("numeric", "0.1", "0.10000000000000000001"),
    ("double precision", "0.1", "0.10000000000000002"),
    ("double precision", "0", "'-0'"),
    ("double precision", "'NaN'", "null"),
    ("real", "0.1", "0.10000001"),
    ("text", "''", "null"),
    ("text", "'a'", "'a '"),
    ("text", "'a'", "'A'"),
    ("text", "E'\\u00e9'", "E'e\\u0301'"),
    ("text", "'null'", "null"),
    ("boolean", "false", "null"),
    ("timestamp", "'2026-01-31 10:00:00.000001'", "'2026-01-31 10:00:00.000002'"),
    ("timestamptz", "'2026-10-25 02:30:00+02'", "'2026-10-25 02:30:00+01'"),
    ("date", "'2026-01-31'", "'2026-02-01'"),
    ("time", "'00:00'", "'24:00'"),
    ("bytea", "'\\x'", "null"),
    ("bytea", "'\\x00'", "'\\x0000'"),
    ("jsonb", "'{\"a\": 1}'", '\'{"a": "1"}\''),
    ("jsonb", "'null'", "null"),
    ("json", "'9007199254740993'", "'9007199254740992'"),
]


@pytest.mark.stack
@pytest.mark.parametrize(("kind", "one", "other"), MUTANTS)
def test_type_mutants_are_seen(own: Own, kind: str, one: str, other: str) -> None:
    run(own, f"create table a (id int, x {kind})", f"insert into a values (1, {one}), (2, {one})")
    before, seen = read(sink("a"), own), mark(sink("a"), own)
    run(own, f"update a set x = {other} where id = 2")
    after = read(sink("a"), own)
    (changed,) = compare(case_of(before.rows, after))
    assert (changed.kind.value, changed.key) == ("corrupted", ("2",))
    assert mark(sink("a"), own) != seen


@pytest.mark.stack
def test_scale_blanks_of_char_and_order_of_rows_are_not_data(own: Own) -> None:
    run(own, "create table a (id int, n numeric, c char(9))", "insert into a values (1, 1.50, 'x'), (2, 2, null)")
    run(own, "create table b (id int, n numeric, c char(3))", "insert into b values (2, 2.0, null), (1, 1.5, 'x')")
    assert list(compare(case_of(read(sink("a"), own).rows, read(sink("b"), own)))) == []


@pytest.mark.stack
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1)
)
def test_any_text_arrives_as_it_is(own: Own, texts: list[str | None]) -> None:
    put(own, [(str(i), text, "1") for i, text in enumerate(texts)])
    assert sorted(read(sink("payments"), own).rows, key=lambda row: int(row[0] or 0)) == [
        (str(i), text, "1") for i, text in enumerate(texts)
    ]


@pytest.mark.stack
def test_more_rows_than_one_fetch(own: Own) -> None:
    run(own, "create table big as select generate_series(1, 45001) as id")
    rows = read(sink("big"), own).rows
    assert (len(rows), len(set(rows))) == (45001, 45001)
    assert mark(sink("big"), own).startswith("45001 rows, ")


@pytest.mark.stack
def test_a_query_can_be_the_sink(own: Own) -> None:
    put(own, [("1", "a", "5"), ("2", "a", "7.50"), ("3", "b", "1")])
    query = "select account, sum(amount) as total from payments where account like 'a%' group by 1 -- the lot;"
    there = read(sink(query), own)
    assert ([c.name for c in there.columns], there.rows) == (["account", "total"], [("a", "12.5")])
    assert read(sink("  (select 1 as x);"), own).rows == [("1",)]
    assert read(sink("with p as (select 1 as x) select * from p"), own).rows == [("1",)]
    before = mark(sink(query), own)
    run(own, "update payments set amount = amount + 1 where id = 1")
    assert mark(sink(query), own) != before


@pytest.mark.stack
def test_names_are_looked_up_as_postgres_does_and_quoted(own: Own) -> None:
    run(own, 'create table "Odd ""Name""" ("A b" int, "select" int)', 'insert into "Odd ""Name""" values (1, 2)')
    there = read(sink('"Odd ""Name"""'), own)
    assert ([c.name for c in there.columns], there.rows) == (["A b", "select"], [("1", "2")])
    put(own, [("1", "a", "1")])
    assert len(read(sink("PAYMENTS"), own).rows) == 1
    assert len(read(sink("information_schema.sql_features"), own).rows) > 10


@pytest.mark.stack
@pytest.mark.parametrize(
    "name", ["nothing", "no.such", "payments; drop table payments", "payments where 1=1", "a.b.c.d", "x.y.z", "", '"']
)
def test_a_table_that_is_not_there_is_unreadable_and_says_so(own: Own, name: str) -> None:
    put(own, [("1", "a", "1")])
    there = read(sink(name), own)
    assert there.unreadable.startswith("asked ")
    assert "the database has none of that name" in there.unreadable
    assert mark(sink(name), own) == "no such table"
    assert len(read(sink("payments"), own).rows) == 1


@pytest.mark.stack
@pytest.mark.parametrize("kind", ["int[]", "interval", "point", "money", "timetz", "int4range"])
def test_types_without_an_exact_text_are_refused_by_name(own: Own, kind: str) -> None:
    run(own, f"create table odd (id int, x {kind})")
    assert "the sink odd has a column x of type" in read(sink("odd"), own).unreadable
    assert read(sink("select id, x::text as x from odd"), own).unreadable == ""


@pytest.mark.stack
@pytest.mark.parametrize(
    "query",
    [
        "select nope from payments",
        "select * from nope",
        "select 1 / 0 as x",
        "with gone as (delete from payments returning *) select * from gone",
        "select nextval('counted') as n",
        "select 1) as sink; drop table payments; select * from (select 2",
    ],
)
def test_a_wrong_or_writing_query_is_refused_in_postgres_words(own: Own, query: str) -> None:
    put(own, [("1", "a", "1")])
    run(own, "create sequence counted")
    there = read(sink(query), own)
    assert there.unreadable.startswith("asked Postgres to read the sink")
    assert len(read(sink("payments"), own).rows) == 1


MODIFIED = [
    ("numeric(12,2)", "numeric(12,2)"),
    ("numeric", "numeric"),
    ("integer", "integer"),
    ("real", "real"),
    ("double precision", "double precision"),
    ("timestamp(0)", "timestamp(0) without time zone"),
    ("timestamp", "timestamp without time zone"),
    ("timestamptz(3)", "timestamp(3) with time zone"),
    ("time(1)", "time(1) without time zone"),
    ("varchar(7)", "character varying(7)"),
    ("char(3)", "character(3)"),
    ("cents", "numeric(9,2)"),
    ("more_cents", "numeric(9,2)"),
    ("text", "text"),
]


@pytest.mark.stack
@pytest.mark.parametrize("target", ["t", "v", "select * from t", "with w as (select * from t) select * from w -- all"])
def test_a_columns_type_has_its_modifier_in_tables_views_and_queries(own: Own, target: str) -> None:
    kinds = [kind for kind, _ in MODIFIED]
    listed = ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds))
    run(
        own,
        "create domain cents as numeric(9,2)",
        "create domain more_cents as cents check (value > 0)",
        f"create table t (gone int, {listed})",
        "alter table t drop column gone",
        "create view v as select * from t",
    )
    there = read(sink(target), own)
    assert [(column.name, column.type) for column in there.columns] == [
        (f"c{place}", words) for place, (_, words) in enumerate(MODIFIED)
    ]
    assert reading.columns(sink(target), own) == there.columns


@pytest.mark.stack
def test_an_enum_is_called_by_its_name_and_a_computed_column_has_no_modifier(own: Own) -> None:
    run(own, "create type mood as enum ('good')", "create table t (m mood, n numeric(9,2))")
    there = read(sink("select m, m as m, sum(n) from t group by 1"), own)
    assert [(c.name, c.type, c.family) for c in there.columns] == [
        ("m", "mood", "text"), ("m", "mood", "text"), ("sum", "numeric", "number"),
    ]  # fmt: skip


@pytest.mark.stack
def test_a_query_that_cannot_be_a_view_is_read_without_modifiers(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    run(own, "create table t (n numeric(9,2))")
    refused = psycopg2.errors.InsufficientPrivilege("permission denied to create temporary tables")

    def deny(*_: object, **__: object) -> None:
        raise refused

    monkeypatch.setattr("harness.components.postgres.sink.column_types.as_view", deny)
    assert [column.type for column in read(sink("select n from t"), own).columns] == ["numeric"]


@pytest.mark.stack
@pytest.mark.parametrize("target", ["nothing", "no.such", "select * from nothing", "select * from no.such"])
def test_a_sink_that_is_not_there_yet_has_no_columns(own: Own, target: str) -> None:
    assert reading.columns(sink(target), own) is None
    assert reading.columns(Sink(kind="console", target=""), own) is None
    with pytest.raises(UsageError, match=r"it said: column .no. does not exist"):
        reading.columns(sink("select no from (select 1 as yes) as t"), own)


UNIQUE = [
    ("id int primary key, n int", ("id",), True),
    ("id int primary key, n int", ("id", "n"), True),
    ("id int, n int, primary key (id, n)", ("id",), False),
    ("id int, n int, unique (n)", ("id",), False),
    ("id int, n int, unique (n), unique (id)", ("id",), True),
    ("id int, n int, unique (id) include (n)", ("id",), True),
    ("id int, n int", ("id",), False),
]


@pytest.mark.stack
@pytest.mark.parametrize(("columns", "key", "unique"), UNIQUE)
def test_whether_a_table_lets_no_two_rows_have_one_key(
    own: Own, columns: str, key: tuple[str, ...], unique: bool
) -> None:
    run(own, f"create table t ({columns})")
    assert read(sink("t", key=key), own).unique is unique
    assert read(sink("select * from t", key=key), own).unique is False


@pytest.mark.stack
@pytest.mark.parametrize("index", ["(id) where n > 0", "(abs(id))", "(abs(id), id)"])
def test_an_index_over_a_part_or_an_expression_makes_no_key_unique(own: Own, index: str) -> None:
    run(own, "create table t (id int, n int)", f"create unique index on t {index}")
    assert read(sink("t", key=("id",)), own).unique is False


ROOT = Path(__file__).resolve().parent.parent
SHIPPED = sorted((ROOT / "scenarios").rglob("*.yaml"))
IN_MARIADB = [path for path in SHIPPED if path.stem.startswith("mariadb_")]
IN_KAFKA = [path for path in SHIPPED if path.stem.startswith("kafka_")]
IN_OPENSEARCH = [path for path in SHIPPED if path.stem.startswith("opensearch_")]
ELSEWHERE = [
    *IN_MARIADB,
    *IN_KAFKA,
    *IN_OPENSEARCH,
    *(path for path in SHIPPED if path.stem.startswith(("delta_", "files_", "iceberg_", "python_"))),
    # Whose columns are declared: in another topic, in files on a server.
    *(
        path
        for path in SHIPPED
        if path.stem.startswith(
            ("hub_to_hub_", "hdfs_delta_", "hdfs_files_", "hdfs_sent_", "sink_listed_", "sink_manifest_")
        )
    ),
]


@pytest.mark.stack
@pytest.mark.parametrize("path", [path for path in SHIPPED if path not in ELSEWHERE], ids=lambda path: path.stem)
def test_the_sinks_of_a_scenario_that_we_ship_are_as_fine_as_its_expected_rows(
    request: pytest.FixtureRequest, path: Path
) -> None:
    are_as_fine(request, path)


_FINE: set[str] = set()
"""By set-up, sinks and columns. Six scenarios in seven have those of another one: no server is asked for them again."""


def are_as_fine(request: pytest.FixtureRequest, path: Path) -> None:
    """As `expected` of that scenario, once its `setup` has made them in what the fixture `own` gives."""
    scenario = shipped.scenario(path)
    workload = make(scenario.input, seed=1, root=ROOT)
    names = tuple((column.name, column.type, column.expression) for column in workload.columns)
    same = repr((scenario.setup, scenario.sinks, names))
    if same in _FINE:
        return
    own: Own = request.getfixturevalue("own")
    for label, text in scenario.setup.items():
        kind = component(label)
        assert isinstance(kind, SetsUp)
        kind.set_up(own[label], text)
    for each in scenario.sinks:
        source = Source(parquet=None, columns=names, places=() if each.watermark else None)
        with Ledger(source, where=path.name) as ledger:
            there = reading.columns(each, own)
            assert (there is None) == (not scenario.setup), "made by `setup`, or by the pipeline"
            if there is not None and each.expected is not None:
                assert schema_mismatch(each, ledger.table(each.expected).described, there) == []
    _FINE.add(same)


@pytest.mark.stack
def test_each_sink_is_read_from_its_own_database(own: Own) -> None:
    run(own, "create table t as select 1 as x")
    run(own, "create table t as select 2 as x", label="postgres.second")
    assert read(sink("t"), own).rows == [("1",)]
    assert read(sink("t", part="second"), own).rows == [("2",)]


@pytest.mark.stack
def test_a_mark_does_not_depend_on_the_order_and_sees_a_duplicate(own: Own) -> None:
    put(own, [("1", "a", "1"), ("2", "b", "2")])
    one = mark(sink("payments"), own)
    put(own, [("2", "b", "2"), ("1", "a", "1")])
    assert mark(sink("payments"), own) == one
    run(own, "insert into payments select * from payments")
    assert mark(sink("payments"), own) != one
    run(own, "delete from payments")
    assert mark(sink("payments"), own) == "0 rows, 0"


@pytest.mark.stack
def test_reading_takes_one_moment_and_leaves_nothing_open(own: Own) -> None:
    put(own, [("1", "a", "1")])
    for _ in range(3):
        read(sink("payments"), own)
        mark(sink("payments"), own)
    with closing(psycopg2.connect(dsn(own))) as connection, connection.cursor() as cursor:
        cursor.execute("select count(*) from pg_stat_activity where application_name = 'onceproof sink'")
        assert cursor.fetchone() == (0,)


@pytest.mark.stack
def test_a_query_without_end_is_stopped(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.components.postgres.sink.open_table.STATEMENT_MS", 200)
    endless = "select count(*) as n from generate_series(1, 100000000000)"
    assert "took longer than 0.2 s" in read(sink(endless), own).unreadable
    with pytest.raises(UsageError, match="took longer"):
        mark(sink(endless), own)


@contextmanager
def asking(own: Own, statement: str) -> Iterator[Any]:
    """A connection whose server is given a statement that nobody waits for."""
    with closing(psycopg2.connect(dsn(own), async_=True)) as client:
        psycopg2.extras.wait_select(client)
        client.cursor().execute(statement)
        yield client


@pytest.mark.stack
def test_a_statement_that_its_client_left_behind_is_seen_until_it_ends(own: Own) -> None:
    assert busy(sink("payments"), own) == ""
    with asking(own, "select pg_sleep(60)") as client:
        until("the server at work", lambda: busy(sink("payments"), own) == "select pg_sleep(60)", within_s=60.0)
        client.cancel()
        until("the server idle", lambda: not busy(sink("payments"), own), within_s=60.0)


@pytest.mark.stack
def test_a_statement_of_another_run_counts_only_if_it_has_touched_this_ones_schema(own: Own) -> None:
    with closing(psycopg2.connect(dsn(own))) as beside, beside.cursor() as cursor:
        cursor.execute(
            "create schema run_r0000beef; create table run_r0000beef.t (id int); create table reached (id int)"
        )
        beside.commit()
        asleep = "insert into run_r0000beef.t select 1 from pg_sleep(60)"
        with asking(own, asleep) as other:
            at_work = "select count(*) from pg_stat_activity where query = %s and wait_event = 'PgSleep'"

            def sleeps() -> bool:
                cursor.execute(at_work, (asleep,))
                beside.commit()
                return cursor.fetchall() == [(1,)]

            until("the other run's statement", sleeps, within_s=60.0)
            assert busy(sink("payments"), own) == ""
            other.cancel()
        with closing(psycopg2.connect(dsn(own))) as both, both.cursor() as two:
            two.execute("insert into run_r0000beef.t values (1); insert into reached values (1)")
            assert "insert into reached" in busy(sink("payments"), own)
            both.rollback()
        cursor.execute("drop schema run_r0000beef cascade; drop table reached")
        beside.commit()


@pytest.mark.stack
def test_in_a_shared_database_only_who_touches_the_runs_schema_counts(own: Own) -> None:
    with closing(psycopg2.connect(dsn(own))) as writer, writer.cursor() as cursor:
        cursor.execute("create table left_open (id int)")
        writer.commit()
        with asking(own, "select pg_sleep(60)") as stranger:
            until("the stranger at work", lambda: busy(sink("payments"), own), within_s=60.0)
            assert busy(sink("payments"), shared(own)) == ""
            cursor.execute("insert into left_open values (1)")
            assert busy(sink("payments"), shared(own)) == "insert into left_open values (1)"
            stranger.cancel()
        until("the stranger gone", lambda: busy(sink("payments"), own) != "select pg_sleep(60)", within_s=60.0)
        assert busy(sink("payments"), own) == "insert into left_open values (1)", "idle, and yet it may commit"
        writer.rollback()
        until("nobody", lambda: not busy(sink("payments"), own), within_s=60.0)
        cursor.execute("drop table left_open")
        writer.commit()


@pytest.mark.slow
def test_a_bit_that_flips_in_the_rows_is_never_another_row(tmp_path: Path) -> None:
    same = table([(str(number), f"text {number}") for number in range(50)])
    save(tmp_path, 0, same)
    path = tmp_path / "sink" / "0.parquet"
    whole, rng, told = path.read_bytes(), Random(4), 0
    for _ in range(400):
        torn = bytearray(whole)
        torn[rng.randrange(len(torn))] ^= 1 << rng.randrange(8)
        path.write_bytes(torn)
        try:
            assert load(tmp_path, 0) == same
        except HarnessError:
            told += 1
    assert told > 100


@pytest.mark.parametrize(
    ("family", "cells"),
    [
        ("number", pa.array(["1", "x"])),
        ("number", pa.array(["1", "1e5"])),
        ("number", pa.array(["1", "1E99999999"])),
        ("float", pa.array(["1.5", ""])),
        ("text", pa.array([1, 2])),
        ("text", pa.array([b"a", b"b"])),
        ("colour", pa.array(["1", "2"])),
    ],
)
def test_cells_that_are_none_of_their_family_are_refused(tmp_path: Path, family: str, cells: pa.Array) -> None:
    column = SinkColumn(name="id", type="t", family=family)
    about = SinkTable(name="n", kind="postgres", target="t", columns=(column,), rows=[("1",), ("2",)])
    save(tmp_path, 0, about)
    pq.write_table(pa.table({"0": cells}), tmp_path / "sink" / "0.parquet")
    with pytest.raises(HarnessError, match="is damaged: the column id"):
        load(tmp_path, 0)


@pytest.mark.parametrize("number", [0.0, -0.0, 5e-324, 1.7976931348623157e308, float("nan"), float("-inf"), 1e16, 1e-5])
def test_any_float_comes_back(tmp_path: Path, number: float) -> None:
    column = SinkColumn(name="id", type="double precision", family="float")
    row = (canonical(number, "float"),)
    same = SinkTable(name="n", kind="postgres", target="t", columns=(column,), rows=[row, (None,)])
    save(tmp_path, 0, same)
    assert load(tmp_path, 0) == same
