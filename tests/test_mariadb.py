"""The sink `mariadb` and its server: what is read back, who writes, who is held, and what is left."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pymysql
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.checkers.cells import Row
from harness.checkers.compare import compare
from harness.component import COMPONENTS, AnswersQueries, SetsUp
from harness.components.mariadb.process import MariaDBServer
from harness.components.mariadb.run_database import Database
from harness.errors import SetupError, StackError
from harness.machine import java
from harness.scenario import Sink
from harness.session.session import Session
from harness.sinks.base import HoldsWriter, MayFold, ShowsWriters
from harness.sinks.reading import busy, mark, opened, read, tried
from harness.wait import until
from tests.laws import FAULTS
from tests.limits import examples
from tests.planted import case_of, is_found, plant
from tests.provided import Own, parts_of, running
from tests.test_sinks import IN_MARIADB, are_as_fine

pytestmark = pytest.mark.stack
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDBServer]:
    logs = tmp_path_factory.mktemp("logs")
    with Session() as session, running(MariaDBServer(session, java.find(), logs=logs)) as made:
        yield made


@pytest.fixture
def own(server: MariaDBServer, request: pytest.FixtureRequest) -> Iterator[Own]:
    with parts_of(server, request) as made:
        yield made


def database(own: Own) -> Database:
    found: Database = own["mariadb"].at
    return found


def run(own: Own, *statements: str) -> None:
    with closing(database(own).connect(name="a test")) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def put(own: Own, rows: list[Row]) -> None:
    """Make `payments` hold exactly these rows."""
    run(own, "drop table if exists payments")
    run(own, "create table payments (id bigint, account text, amount decimal(38, 9))")
    with closing(database(own).connect(name="a test")) as connection, connection.cursor() as cursor:
        cursor.executemany("insert into payments values (%s, %s, %s)", rows)


def sink(target: str, **changes: Any) -> Sink:
    return Sink(kind="mariadb", target=target, **changes)


@pytest.mark.parametrize("fault", FAULTS)
def test_all_fourteen_planted_faults_are_found(own: Own, fault: str) -> None:
    rows, found, must = plant(fault)
    put(own, found)
    is_found(rows, read(sink("payments"), own), must)


@pytest.mark.parametrize("path", IN_MARIADB, ids=lambda path: path.stem)
def test_the_sinks_of_a_scenario_that_we_ship_are_as_fine_as_its_expected_rows(
    request: pytest.FixtureRequest, path: Path
) -> None:
    are_as_fine(request, path)


EXACT = [
    ("tinyint(1)", "true", "tinyint", "number", "1"),
    ("smallint", "-32768", "smallint", "number", "-32768"),
    ("int unsigned", "4294967295", "int", "number", "4294967295"),
    ("bigint", "9007199254740993", "bigint", "number", "9007199254740993"),
    ("bigint unsigned", "18446744073709551615", "bigint", "number", "18446744073709551615"),
    ("decimal(38,19)", "9007199254740993.0000000000000000001", "decimal(38,19)", "number",
     "9007199254740993.0000000000000000001"),
    ("decimal(10,4)", "1.5", "decimal(10,4)", "number", "1.5"),
    ("decimal(10,0) unsigned", "15", "decimal(10,0)", "number", "15"),
    ("decimal(18,2) unsigned", "1.5", "decimal(18,2)", "number", "1.5"),
    ("float", "0.1", "float", "float", "0.10000000149011612"),
    ("float", "16777217", "float", "float", "16777216.0"),
    ("double", "0.1", "double", "float", "0.1"),
    ("double", "0.1e0 + 0.2e0", "double", "float", "0.30000000000000004"),
    ("double", "-0e0", "double", "float", "-0.0"),
    ("double", "5e-324", "double", "float", "5e-324"),
    ("double", "1.7976931348623157e308", "double", "float", "1.7976931348623157e+308"),
    ("text", "'trailing '", "text", "text", "trailing "),
    ("varchar(10)", "'x '", "text", "text", "x "),
    ("text", "''", "text", "text", ""),
    ("longtext", "'Ü\\n\\t\\\\N 😀'", "text", "text", "Ü\n\t\\N 😀"),
    ("char(5)", "'x'", "text", "text", "x"),
    ("enum('good','bad')", "'good'", "text", "text", "good"),
    ("datetime(6)", "'2026-01-31 10:00:00.123456'", "datetime(6)", "timestamp", "2026-01-31T10:00:00.123456"),
    ("datetime", "'2026-01-31 10:00:00'", "datetime(0)", "timestamp", "2026-01-31T10:00:00.000000"),
    ("timestamp(3) null", "'2026-01-31 10:00:00.123'", "timestamp(3)", "instant", "2026-01-31T10:00:00.123000Z"),
    ("date", "'2026-01-31'", "date", "date", "2026-01-31"),
    ("time(2)", "'10:11:12.5'", "time(2)", "time", "10:11:12.500000"),
    ("year", "2026", "year", "number", "2026"),
    ("bit(3)", "b'101'", "bit(3)", "number", "5"),
    ("varbinary(8)", "x'00ff'", "binary", "bytes", "00ff"),
    ("blob", "''", "binary", "bytes", ""),
    ("json", "'{\"b\": 1.0}'", "text", "text", '{"b": 1.0}'),
    ("bigint", "null", "bigint", "number", None),
    ("text", "null", "text", "text", None),
]  # fmt: skip


@pytest.mark.parametrize("case", EXACT)
def test_every_type_arrives_exactly(own: Own, case: tuple[str, str, str, str, str | None]) -> None:
    kind, literal, type_, family, cell = case
    run(own, f"create table one (x {kind})", f"insert into one values ({literal})")
    for target in ("one", "select x from one"):
        there = read(sink(target), own)
        assert there.unreadable == ""
        (column,) = there.columns
        assert (column.name, column.type, column.family, there.rows) == ("x", type_, family, [(cell,)])


MUTANTS = [
    ("bigint", "9007199254740992", "9007199254740993"),
    ("decimal(38,20)", "0.1", "0.10000000000000000001"),
    ("double", "0.1", "0.10000000000000002"),
    ("double", "0e0", "-0e0"),
    ("float", "0.1", "0.10000001"),
    ("text", "''", "null"),
    ("text", "'a'", "'a '"),
    ("text", "'a'", "'A'"),
    ("text", "'é'", "'e\u0301'"),
    ("text", "'null'", "null"),
    ("datetime(6)", "'2026-01-31 10:00:00.000001'", "'2026-01-31 10:00:00.000002'"),
    ("date", "'2026-01-31'", "'2026-02-01'"),
    ("varbinary(4)", "''", "null"),
    ("varbinary(4)", "x'00'", "x'0000'"),
]


@pytest.mark.parametrize(("kind", "one", "other"), MUTANTS)
def test_type_mutants_are_seen(own: Own, kind: str, one: str, other: str) -> None:
    run(own, f"create table a (id int, x {kind})", f"insert into a values (1, {one}), (2, {one})")
    before, seen = read(sink("a"), own), mark(sink("a"), own)
    run(own, f"update a set x = {other} where id = 2")
    (changed,) = compare(case_of(before.rows, read(sink("a"), own)))
    assert (changed.kind.value, changed.key) == ("corrupted", ("2",))
    assert mark(sink("a"), own) != seen


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_any_text_arrives_as_it_is(own: Own, texts: list[str | None]) -> None:
    put(own, [(str(i), text, "1") for i, text in enumerate(texts)])
    assert sorted(read(sink("payments"), own).rows, key=lambda row: int(row[0] or 0)) == [
        (str(i), text, "1") for i, text in enumerate(texts)
    ]


def test_more_rows_than_one_fetch(own: Own) -> None:
    run(own, "create table big as select seq as id from seq_1_to_45001")
    rows = read(sink("big"), own).rows
    assert (len(rows), len(set(rows))) == (45001, 45001)
    assert mark(sink("big"), own).startswith("45001 rows, ")


@pytest.mark.parametrize(
    ("made", "key", "unique"),
    [
        ("id int primary key, x int", ("id",), True),
        ("id int, x int, unique (id, x)", ("id", "x"), True),
        ("id int, x int, unique (id, x)", ("id",), False),
        ("id int, x int, key (id)", ("id",), False),
    ],
)
def test_whether_a_key_is_unique(own: Own, made: str, key: tuple[str, ...], unique: bool) -> None:
    run(own, f"create table t ({made})", "insert into t values (1, 2)")
    assert read(sink("t", key=key), own).unique is unique


def test_what_cannot_be_read_is_said(own: Own) -> None:
    run(own, "create table here (where_ point)", "create table day (t time)", "insert into day values ('-10:00:00')")
    assert "a column where_ of a type that cannot be compared exactly" in read(sink("here"), own).unreadable
    assert "holds what cannot be compared" in read(sink("day"), own).unreadable
    assert "asked MariaDB to read the sink select wrong" in read(sink("select wrong from day"), own).unreadable
    missing = read(sink("nowhere"), own)
    assert missing.absent and "Make it in `setup`" in missing.unreadable
    assert mark(sink("nowhere"), own) == "no such table"
    writes = read(sink("with a as (select 1) select sleep(0) from nowhere2"), own)
    assert writes.absent


def test_a_query_or_a_view_is_said_not_to_have_been_tried(own: Own) -> None:
    put(own, [("1", "a", "5")])
    run(own, "create view once as select distinct * from payments")
    place, untried = database(own).name, "no copy of its tables"
    queries = ("select distinct id from payments", "once", f"{place}.once")
    for target, folding in (("payments", ""), (f"{place}.payments", ""), *((query, untried) for query in queries)):
        there = opened(sink(target), own)
        assert isinstance(there, MayFold)
        found = tried(sink(target), read(sink(target), own), own, after={})
        assert found.folds is None and found.folding.startswith(folding) and bool(found.folding) == bool(folding)


def test_who_has_written_and_not_committed_is_named(own: Own) -> None:
    run(own, "create table a (id int)", "create table b (id int)", "create view v as select * from a")
    there = {target: opened(sink(target), own) for target in ("a", "b", "v", "select id from a")}
    with closing(database(own).connect(name="a pipeline")) as connection, connection.cursor() as cursor:
        connection.begin()
        cursor.execute("select * from a")
        for found in there.values():
            assert isinstance(found, ShowsWriters) and found.writing(wait_ms=1000) == ([], [])
        assert "transaction of connection" in busy(sink("a"), own), "it has read, and may yet write"
        cursor.execute("select * from b for update")
        assert there["b"].writing(wait_ms=1000) == ([], []), "it has locked rows, and written none"  # type: ignore[union-attr]
        connection.rollback()
        connection.begin()
        cursor.execute("insert into a values (1)")
        for target, found in there.items():
            assert isinstance(found, ShowsWriters)
            mine, ours = found.writing(wait_ms=1000)
            assert len(ours) == 1 and len(mine) == (target != "b"), target
        connection.rollback()
        assert busy(sink("a"), own) == ""
        assert there["a"] is not None and there["a"].writing(wait_ms=1000) == ([], [])  # type: ignore[attr-defined]


def test_a_statement_whose_client_is_gone_is_work(own: Own) -> None:
    connection = database(own).connect(name="a pipeline")
    asking = threading.Thread(target=slow, args=(connection,), daemon=True)
    asking.start()
    until("the server at work", lambda: "sleep(60)" in busy(sink("a"), own), within_s=WITHIN_S)
    run(own, f"kill {connection.thread_id()}")
    until("the server idle", lambda: not busy(sink("a"), own), within_s=WITHIN_S)
    asking.join(WITHIN_S)


def slow(connection: Any) -> None:
    with pytest.raises(pymysql.Error), connection.cursor() as cursor:
        cursor.execute("select sleep(60)")


def test_its_rows_are_counted_and_their_writer_is_held(own: Own) -> None:
    run(own, "create table t (id int primary key, n int default 1)")
    there = opened(sink("t"), own)
    assert isinstance(there, HoldsWriter) and there.is_table()
    wire = there.row_breakpoint()
    run(own, "insert into t (id) values (1), (2)")
    assert (wire.rows(), wire.blocked()) == (2, None)
    with closing(database(own).connect(name="a pipeline")) as connection, connection.cursor() as cursor:
        connection.begin()
        cursor.execute("insert into t (id) values (3)")
        connection.rollback()
    assert wire.rows() == 3, "rows that never commit count too"
    wire.block_after(9)
    wire.block_after(5)
    ended: list[bool] = []
    writer = threading.Thread(target=lambda: ended.append(written(own)), daemon=True)
    writer.start()
    held = until("a writer to be held", wire.blocked, within_s=WITHIN_S)
    assert held.rows == wire.rows() - 1 == 5
    assert held.client is not None and held.client[0] == "127.0.0.1"
    assert isinstance(there, ShowsWriters)
    (mine, _) = there.writing(wait_ms=1000)
    assert [each.backend for each in mine] == [held.backend]
    wire.release()
    writer.join(WITHIN_S)
    assert ended == [True] and read(sink("t"), own).rows == [("1", "2"), ("2", "1"), ("4", "1"), ("5", "1"), ("6", "1")]
    wire.close()


def written(own: Own) -> bool:
    insert = "insert into t (id) values (4), (5), (1), (6) on duplicate key update n = n + 1"
    run(own, insert)
    return True


def test_a_table_that_is_not_there_cannot_be_counted(own: Own) -> None:
    there = opened(sink("nowhere"), own)
    assert isinstance(there, HoldsWriter) and not there.is_table()
    with pytest.raises(SetupError, match=r"asked to count the rows of nowhere; .* Make the table in the scenario's"):
        there.row_breakpoint()


def test_setup_runs_statements_and_says_what_it_cannot(own: Own) -> None:
    kind = COMPONENTS["mariadb"]
    assert isinstance(kind, SetsUp)
    procedure = "create procedure p(v int) begin insert into t values (v); insert into t values (v + 1); end"
    kind.set_up(own["mariadb"], f"create table t (id int); {procedure}; call p(7)")
    assert sorted(read(sink("t"), own).rows) == [("7",), ("8",)]
    with pytest.raises(
        SetupError, match=r"asked mariadb to run the scenario's setup; saw .* Mend `setup`: create nonsense"
    ):
        kind.set_up(own["mariadb"], "create nonsense")


def test_a_pipelines_own_offsets_are_followed(own: Own) -> None:
    kind = COMPONENTS["mariadb"]
    assert isinstance(kind, AnswersQueries)
    run(own, "create table offsets (part int primary key, next bigint)", "insert into offsets values (0, 5), (1, 7)")
    found = kind.followed(own["mariadb"], "select part, next from offsets")
    assert found.offsets() == {0: 5, 1: 7}
    with closing(database(own).connect(name="a pipeline")) as connection, connection.cursor() as cursor:
        connection.begin()
        cursor.execute("update offsets set next = 9")
        assert found.saving() == (f"transaction of connection {connection.thread_id()}",)
        assert found.offsets() == {0: 5, 1: 7}
        connection.commit()
    assert found.offsets() == {0: 9, 1: 9}
    assert found.saving() == ()
    found.close()
    wrong = kind.followed(own["mariadb"], "select part from offsets")
    with pytest.raises(SetupError, match="rows of \\(partition, next offset\\)"):
        wrong.offsets()
    wrong.close()


def test_it_comes_back_with_its_data_after_a_kill(server: MariaDBServer, own: Own) -> None:
    run(own, "create table t (id int)", "insert into t values (1)")
    process = server._process
    assert process is not None
    process.kill()
    process.wait(WITHIN_S)
    with pytest.raises(StackError, match="mariadb ended with signal 9"):
        server.check()
    with pytest.raises(StackError, match=r"asked MariaDB to read the sink t; saw .*Can't connect"):
        read(sink("t"), own)
    server.start()
    server.check()
    assert read(sink("t"), own).rows == [("1",)]


def test_row_breakpoint_and_offsets_outlive_a_server_that_a_fault_kills(server: MariaDBServer, own: Own) -> None:
    run(
        own,
        "create table t (id int)",
        "create table at (part int primary key, next bigint)",
        "insert into at values (0, 5)",
    )
    there, kind = opened(sink("t"), own), COMPONENTS["mariadb"]
    assert isinstance(there, HoldsWriter) and isinstance(kind, AnswersQueries)
    wire, followed = there.row_breakpoint(), kind.followed(own["mariadb"], "select part, next from at")
    run(own, "insert into t values (1), (2)")
    writer = database(own).connect(name="a pipeline")
    writer.begin()
    writer.cursor().execute("insert into t values (7), (8), (9)")
    assert wire.rows() == 5
    wire.block_after(6)
    assert followed.offsets() == {0: 5}
    server.stop()
    # Nobody misses it: it was meant.
    server.check()
    assert followed.offsets() == {0: 5}, "what was known stands"
    with pytest.raises(StackError, match="asked MariaDB how many rows"):
        wire.rows()
    server.start()
    wire.recount(5)
    assert wire.rows() == 5, "rows that were rolled back count too"
    wire.release()
    run(own, "insert into t values (3), (4), (5), (6)", "update at set next = 9")
    assert wire.rows() == 9
    wire.recount(3)
    assert wire.rows() == 9, "nothing was killed since"
    until("the offsets", lambda: followed.offsets() == {0: 9}, within_s=WITHIN_S)
    followed.close()
    wire.close()


def test_nobody_comes_in_without_the_password(server: MariaDBServer) -> None:
    for user, password in (("root", ""), ("", ""), ("onceproof", ""), ("root", server.server.password)):
        with pytest.raises(pymysql.OperationalError):
            pymysql.connect(host=server.server.host, port=server.server.port, user=user, password=password)
    assert server.describe()["version"].startswith("10.11.")


def test_the_database_of_a_run_goes_whoever_uses_it(server: MariaDBServer) -> None:
    (given,) = server.provide("rgone", {"": {}}).values()
    assert given.placeholders["database"] == "run_rgone"
    with closing(given.at.connect(name="a pipeline")) as connection, connection.cursor() as cursor:
        cursor.execute("create table t (id int)")
        connection.begin()
        cursor.execute("insert into t values (1)")
        server.drop("rgone", [""])
        server.drop("rgone", [""])
    assert server.server.ask("select count(*) from information_schema.schemata where schema_name = 'run_rgone'") == "0"


COUNTERS = Path(__file__).parents[1] / "pipelines" / "error_counts"
Save = Callable[[int, int], None]


@pytest.fixture
def save(own: Own, monkeypatch: pytest.MonkeyPatch) -> Iterator[Save]:
    """`added_by_partition.py` writes the records of partition 0 between two offsets, an error each."""
    run(
        own,
        "create table error_log (log_time datetime primary key, log_count int not null default 0)",
        "create table progress (part int primary key, next_offset bigint not null)",
    )
    for name, value in own["mariadb"].environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(COUNTERS))
    program = importlib.import_module("added_by_partition")

    def lines(begin: int, end: int) -> None:
        one = {"partition": 0, "level": "ERROR", "minute": "2026-01-31 10:00:00"}
        program.save(iter([{**one, "offset": offset} for offset in range(begin, end)]))

    yield lines
    for name in ("added_by_partition", "logs"):
        sys.modules.pop(name, None)


def counted(own: Own) -> list[Row]:
    return read(sink("select log_count, next_offset from error_log, progress"), own).rows


def test_a_batch_that_is_cut_otherwise_when_it_runs_again_is_counted_from_where_it_was(own: Own, save: Save) -> None:
    save(0, 4)
    save(0, 4)
    assert counted(own) == [("4", "4")], "the same batch again"
    save(2, 7)
    assert counted(own) == [("7", "7")], "two of its records had been counted"
    save(4, 6)
    assert counted(own) == [("7", "7")], "an old task comes late"


def test_a_batch_beyond_what_has_been_counted_ends_the_query(own: Own, save: Save) -> None:
    save(0, 4)
    with pytest.raises(ValueError, match="the batch begins at 6, and no attempt has counted from 4 on"):
        save(6, 8)
    assert counted(own) == [("4", "4")]
