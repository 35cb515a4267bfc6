"""Who is writing into a sink at one moment, and what is kept of a sink however big it is; on a real Postgres."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from harness.components.postgres.process import Postgres
from harness.components.postgres.sink.open_table import OpenTable
from harness.errors import StackError
from harness.scenario import Sink
from harness.session.session import Session
from harness.sinks.base import statements
from harness.sinks.reading import keep, read
from harness.sinks.sql import table as sql
from harness.sinks.table import fingerprint, load
from tests.provided import at

pytestmark = pytest.mark.stack
PAYMENTS = Sink(kind="postgres", target="payments", key=("id",))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with Session() as session:
        made = Postgres(session, logs=tmp_path_factory.mktemp("logs"))
        made.start()
        yield made
        made.stop()
        made.close()


@pytest.fixture
def dsn(server: Postgres, request: pytest.FixtureRequest) -> Iterator[str]:
    schema = f"w{os.getpid()}_{abs(hash(request.node.nodeid)) % 10**9}"
    server.databases.create_schema("", schema)
    made = server.databases.dsn("", schema)
    with writer(made) as cursor:
        cursor.execute("create table payments (id bigint, word text)")
        cursor.execute("create table beside (id bigint)")
        cursor.execute("create view seen as select id from payments where id > 0")
        cursor.execute("create table parts (id bigint) partition by range (id)")
        cursor.execute("create table part_one partition of parts for values from (0) to (100)")
        cursor.connection.commit()
    yield made
    server.databases.drop_schema("", schema)


@contextmanager
def writer(dsn: str) -> Iterator[Any]:
    """A client with a transaction that is rolled back in the end."""
    with closing(psycopg2.connect(dsn)) as connection, connection.cursor() as cursor:
        yield cursor
        connection.rollback()


def table(dsn: str, target: str) -> OpenTable:
    return OpenTable(at(dsn).at, target, (), "postgres", shared=False)


def told(dsn: str, target: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The statements of who has written into the sink, and into the run's schema."""
    theirs, ours = table(dsn, target).writing(wait_ms=300)
    return statements(theirs), statements(ours)


INSERT = "insert into payments values (1, 'a')"


def test_nobody_writes(dsn: str) -> None:
    assert told(dsn, "payments") == ((), ())


def test_an_open_transaction_that_has_written_is_told_with_its_statement(dsn: str) -> None:
    with writer(dsn) as cursor:
        cursor.execute(INSERT)
        assert told(dsn, "payments") == ((INSERT,), (INSERT,))
        cursor.connection.commit()
        assert told(dsn, "payments") == ((), ()), "committed"


@pytest.mark.parametrize(
    "statement",
    ["select * from payments", "update payments set word = 'b' where id = 7", "lock payments in row exclusive mode"],
)
def test_who_has_only_read_or_found_nothing_to_write_does_not_write(dsn: str, statement: str) -> None:
    with writer(dsn) as cursor:
        cursor.execute(statement)
        assert told(dsn, "payments") == ((), ())


def test_a_table_beside_the_sink_is_the_runs_and_not_the_sinks(dsn: str) -> None:
    with writer(dsn) as cursor:
        cursor.execute("insert into beside values (1)")
        assert told(dsn, "payments") == ((), ("insert into beside values (1)",))


@pytest.mark.parametrize(
    ("target", "reads"),
    [
        ("select id from payments where word = 'a'", True),
        ("seen", True),
        ("select * from seen", True),
        ("with p as (select * from payments) select count(*) from p", True),
        ("select id from beside", False),
        ("select 1 as id", False),
        ("nowhere", False),
    ],
)
def test_a_query_or_view_is_written_into_where_a_table_that_it_reads_is(dsn: str, target: str, reads: bool) -> None:
    with writer(dsn) as cursor:
        cursor.execute(INSERT)
        assert told(dsn, target) == ((INSERT,) if reads else (), (INSERT,))


@pytest.mark.parametrize("table", ["parts", "part_one"])
def test_a_partition_is_part_of_its_table(dsn: str, table: str) -> None:
    with writer(dsn) as cursor:
        cursor.execute(f"insert into {table} values (1)")
        assert told(dsn, "parts")[0] == (f"insert into {table} values (1)",)


def test_a_prepared_transaction_may_yet_commit(dsn: str) -> None:
    gid = f"g{os.getpid()}"
    with closing(psycopg2.connect(dsn)) as connection:
        connection.tpc_begin(gid)
        connection.cursor().execute(INSERT)
        connection.tpc_prepare()
        try:
            assert told(dsn, "payments") == ((f"prepared transaction {gid}",), (f"prepared transaction {gid}",))
        finally:
            connection.tpc_rollback()
    assert told(dsn, "payments") == ((), ())


def test_who_locks_every_reader_out_is_told_and_the_sink_is_kept_as_unreadable(dsn: str, tmp_path: Path) -> None:
    with writer(dsn) as cursor:
        cursor.execute("truncate payments")
        assert told(dsn, "payments")[0] == ("truncate payments",)
        assert keep(tmp_path, 0, PAYMENTS, {"postgres": at(dsn)}, rows_max=10, wait_ms=300) == 0
    table = load(tmp_path, 0)
    assert table is not None and table.rows == []
    assert table.unreadable.endswith("a transaction that writes locked every reader out for 0.3 s")


def test_a_long_statement_is_shortened(dsn: str) -> None:
    long = f"insert into payments values (1, '{'a' * 200}')"
    with writer(dsn) as cursor:
        cursor.execute(long)
        ((only,), _) = told(dsn, "payments")
    assert len(only) == 80 and long.startswith(only[:-3])


def test_a_database_that_is_down_is_an_error_of_the_stack(tmp_path: Path) -> None:
    nowhere = "host=127.0.0.1 port=1 user=x"
    with pytest.raises(StackError):
        table(nowhere, PAYMENTS.target).writing(wait_ms=300)
    with pytest.raises(StackError):
        keep(tmp_path, 0, PAYMENTS, {"postgres": at(nowhere)}, rows_max=10, wait_ms=300)
    assert not (tmp_path / "sink").exists()


def test_up_to_the_bound_a_sink_is_kept_whole_and_beyond_it_as_fingerprints(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "FETCH_ROWS", 7)
    with writer(dsn) as cursor:
        cursor.execute("insert into payments select n, 'row ' || n from generate_series(1, 50) n")
        cursor.connection.commit()
    whole = read(PAYMENTS, {"postgres": at(dsn)})
    assert keep(tmp_path / "a", 0, PAYMENTS, {"postgres": at(dsn)}, rows_max=50, wait_ms=300) == 50
    assert load(tmp_path / "a", 0) == whole
    assert keep(tmp_path / "b", 0, PAYMENTS, {"postgres": at(dsn)}, rows_max=49, wait_ms=300) == 50
    prints = load(tmp_path / "b", 0)
    assert prints is not None
    assert (whole.form, prints.form) == ("whole", "fingerprints")
    assert [column.name for column in prints.columns] == ["id", "fingerprint"]
    assert sorted(prints.rows) == sorted((row[0], fingerprint(row)) for row in whole.rows)
    assert json.loads((tmp_path / "b" / "sink" / "0.json").read_text())["form"] == "fingerprints"
