"""The row breakpoint stops a sink's writer at one exact row, whatever way it writes; on a real Postgres."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest
from psycopg2.extras import execute_values

from harness.components.postgres.process import Postgres
from harness.components.postgres.sink.row_breakpoint import RowBreakpoint
from harness.context import CountedSink
from harness.errors import StackError
from harness.faults import fault
from harness.history import History
from harness.resources import RunResources
from harness.run.progress.observer import Observer
from harness.run.schedule import Schedule
from harness.scenario import Step
from harness.stack import Stack
from harness.triggers import TRIGGERS, trigger
from harness.triggers.rows import armed
from harness.wait import until
from tests.provided import dsn, reader, schema

pytestmark = pytest.mark.stack
ROWS_KIND = TRIGGERS["rows"]
ROWS = [(n, f"row {n}") for n in range(30)]


@pytest.fixture
def own(stack: Stack, request: pytest.FixtureRequest) -> Iterator[RunResources]:
    own = stack.provide(f"breakpoint{abs(hash(request.node.name)) % 10**8}", {"kafka": {}, "postgres": {}})
    with psycopg2.connect(dsn(own)) as connection, connection.cursor() as cursor:
        cursor.execute("create table sink (id int primary key, word text)")
    connection.close()
    yield own
    stack.release(own)


def autocommit(connection: Any) -> None:
    connection.autocommit = True
    with connection.cursor() as cursor:
        for row in ROWS:
            cursor.execute("insert into sink values (%s, %s)", row)


def one_transaction(connection: Any) -> None:
    with connection.cursor() as cursor:
        for row in ROWS:
            cursor.execute("insert into sink values (%s, %s) on conflict (id) do update set word = excluded.word", row)
    connection.commit()


def many_a_statement(connection: Any) -> None:
    with connection.cursor() as cursor:
        execute_values(cursor, "insert into sink values %s", ROWS)
    connection.commit()


def count(own: RunResources) -> int:
    with psycopg2.connect(dsn(own)) as connection, connection.cursor() as cursor:
        cursor.execute("select count(*) from sink")
        (found,) = cursor.fetchone() or (0,)
    connection.close()
    return int(found)


@pytest.mark.parametrize(
    ("write", "rows", "seen_while_held", "seen_after_death"),
    [
        (autocommit, 12, 12, 13),
        (one_transaction, 12, 0, 0),
        (many_a_statement, 12, 0, 0),
        (autocommit, 0, 0, 1),
        (one_transaction, 0, 0, 0),
        (many_a_statement, 0, 0, 0),
    ],
)
def test_a_writer_stands_after_exactly_k_rows_and_what_stays_after_its_death_is_postgres_answer(
    own: RunResources, write: Callable[[Any], None], rows: int, seen_while_held: int, seen_after_death: int
) -> None:
    row_breakpoint = RowBreakpoint(schema(own), "sink")
    assert (row_breakpoint.rows(), row_breakpoint.blocked()) == (0, None)
    row_breakpoint.block_after(rows)
    writer = psycopg2.connect(dsn(own))
    thread = threading.Thread(target=lambda: attempt(write, writer), daemon=True)
    thread.start()
    until("the writer to stand", row_breakpoint.blocked, within_s=60.0)
    held = row_breakpoint.blocked()
    assert held is not None
    assert (held.rows, held.backend) == (rows, writer.info.backend_pid)
    assert held.client is not None and held.client[0] == "127.0.0.1"
    assert count(own) == seen_while_held
    # The client dies as a killed process does: its socket closes under the server's feet.
    theirs = socket.socket(fileno=writer.fileno())
    theirs.shutdown(socket.SHUT_RDWR)
    theirs.detach()
    row_breakpoint.release()
    thread.join(60.0)
    until("the server to notice", lambda: gone(own, held.backend), within_s=60.0)
    assert count(own) == seen_after_death
    row_breakpoint.close()


def attempt(write: Callable[[Any], None], connection: Any) -> None:
    with contextlib.suppress(psycopg2.Error):
        write(connection)


def gone(own: RunResources, backend: int) -> bool:
    with psycopg2.connect(dsn(own)) as connection, connection.cursor() as cursor:
        cursor.execute("select 1 from pg_stat_activity where pid = %s", (backend,))
        found = cursor.fetchone()
    connection.close()
    return found is None


def test_rows_of_a_transaction_that_never_commits_are_counted(own: RunResources) -> None:
    row_breakpoint = RowBreakpoint(schema(own), "sink")
    writer = psycopg2.connect(dsn(own))
    with writer.cursor() as cursor:
        cursor.execute("insert into sink values (1, 'a'), (2, 'b')")
    writer.rollback()
    writer.close()
    assert row_breakpoint.rows() == 2
    assert count(own) == 0
    row_breakpoint.close()


def test_it_can_be_armed_again_after_letting_go(own: RunResources) -> None:
    row_breakpoint = RowBreakpoint(schema(own), "sink")
    for round_ in range(2):
        row_breakpoint.block_after(row_breakpoint.rows())
        writer = psycopg2.connect(dsn(own))
        writer.autocommit = True
        row = (round_, "a")
        thread = threading.Thread(
            target=lambda w=writer, r=row: w.cursor().execute("insert into sink values (%s, %s)", r)
        )
        thread.start()
        until("the writer to stand", row_breakpoint.blocked, within_s=60.0)
        row_breakpoint.release()
        thread.join(60.0)
        writer.close()
        assert count(own) == round_ + 1
    row_breakpoint.close()


def test_it_counts_on_after_the_server_was_killed(own: RunResources, stack: Stack) -> None:
    server = stack.servers["postgres"]
    assert isinstance(server, Postgres)
    row_breakpoint = RowBreakpoint(schema(own), "sink")
    for write in (one_transaction, autocommit):
        before = row_breakpoint.rows()
        writer = psycopg2.connect(dsn(own))
        writer.autocommit = write is autocommit
        with writer.cursor() as cursor:
            cursor.execute("insert into sink values (%s, 'a'), (%s, 'b')", (before + 1000, before + 1001))
        row_breakpoint.block_after(before + 3)
        server.stop()
        server.check()
        with pytest.raises(StackError, match="asked Postgres how many rows the sink was handed"):
            row_breakpoint.rows()
        server.start()
        row_breakpoint.recount(before + 2)
        assert (row_breakpoint.rows(), row_breakpoint.blocked()) == (before + 2, None)
        attempt(autocommit, psycopg2.connect(dsn(own)))
        assert row_breakpoint.rows() > before + 2, "nobody is held any more"
        row_breakpoint.recount(0)
        assert row_breakpoint.rows() > before + 2, "nothing was killed since"
        run_out(own)
    row_breakpoint.close()


def run_out(own: RunResources) -> None:
    """Empty the sink."""
    with psycopg2.connect(dsn(own)) as connection, connection.cursor() as cursor:
        cursor.execute("truncate sink")
    connection.close()


def test_the_rows_of_the_sink_that_is_named_count_and_no_others(own: RunResources, tmp_path: Path) -> None:
    with contextlib.closing(psycopg2.connect(dsn(own))) as connection, connection.cursor() as cursor:
        cursor.execute("create table other (id int, word text)")
        connection.commit()
    observer = Observer(tmp_path, reader("topic"), History(None))
    first, other = (RowBreakpoint(schema(own), name) for name in ("sink", "other"))
    run = context(own, observer, first)
    run.counted = [*run.counted, CountedSink(place=1, name="other", feeds=None, rows=other)]
    step = Step(when=trigger("rows", 2, sink="other"), do=fault("crash mid-sink"))
    try:
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(Schedule((step,), run)._wait, step, 0)
            until("the trigger to be armed", lambda: other._locked, within_s=60.0)
            inserted(own, 1, 2, 3).join(60.0)
            assert count(own) == 3 and not waiting.done()
            writer = inserted(own, 1, 2, 3, table="other")
            reached = waiting.result(60.0)
        assert reached.blocked is not None and (reached.sink, reached.blocked.rows) == (1, 2)
        assert first.blocked() is None
        other.release()
        writer.join(60.0)
    finally:
        observer.close()
        first.close()
        other.close()


def context(own: RunResources, observer: Observer, row_breakpoint: RowBreakpoint) -> Any:
    """A run as the trigger `rows` sees it."""
    return SimpleNamespace(
        own=own,
        supervisor=SimpleNamespace(last_ended_by_fault=0),
        observer=observer,
        counted=[CountedSink(place=0, name="sink", feeds=None, rows=row_breakpoint)],
        snapshots=None,
        stop=threading.Event(),
        hopeless=lambda: "",
    )


@dataclass
class Written:
    """A checkpoint that is written by hand."""

    folder: Path

    def plan(self, batch: int, end: int) -> None:
        self._appear("offsets", batch, f'v1\n{{}}\n{{"topic":{{"0":{end}}}}}')

    def commit(self, batch: int) -> None:
        self._appear("commits", batch, "v1\n{}")

    def begin(self) -> None:
        self._appear("sources/0", 0, 'v1\n{"topic":{"0":0}}')

    def _appear(self, log: str, batch: int, text: str) -> None:
        (self.folder / log).mkdir(parents=True, exist_ok=True)
        half = self.folder / log / f".{batch}.0a-1b.tmp"
        half.write_text(text)
        half.rename(self.folder / log / str(batch))


def inserted(own: RunResources, *numbers: int, table: str = "sink") -> threading.Thread:
    """One client that writes each row by itself, in a thread."""

    def write() -> None:
        with contextlib.closing(psycopg2.connect(dsn(own))) as connection:
            connection.autocommit = True
            for number in numbers:
                connection.cursor().execute(f"insert into {table} values (%s, 'a')", (number,))

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("batch", [None, 0])
@pytest.mark.parametrize("empty", [False, True], ids=["first batch with records", "first batch without"])
def test_before_the_first_row_is_before_the_first_of_all(
    own: RunResources, tmp_path: Path, batch: int | None, empty: bool
) -> None:
    observer, row_breakpoint = (
        Observer(tmp_path, reader("topic"), History(None)),
        RowBreakpoint(schema(own), "sink"),
    )
    written, when = Written(tmp_path / "c"), trigger("rows", 0, batch=batch)
    step = Step(when=when, do=fault("crash mid-sink"))
    try:
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(Schedule((step,), context(own, observer, row_breakpoint))._wait, step, 0)
            until("the trigger to be armed", lambda: row_breakpoint._locked, within_s=60.0)
            written.begin()
            if empty:
                written.plan(0, 0)
                written.commit(0)
            written.plan(int(empty), 9)
            until("the plan", lambda: observer.newest_batch() == int(empty), within_s=60.0)
            writer = inserted(own, 1, 2)
            moment = waiting.result(60.0)
        assert moment.blocked is not None and moment.blocked.rows == 0
        assert moment.batch == int(empty), "an empty batch has no row to stand at"
        assert ROWS_KIND.agrees(when, moment, observer.listing(moment.folder))
        assert count(own) == 0
        row_breakpoint.release()
        writer.join(60.0)
        assert count(own) == 2
    finally:
        observer.close()
        row_breakpoint.close()


def test_before_the_first_row_of_a_batch_counts_from_the_commit_before_it(own: RunResources, tmp_path: Path) -> None:
    observer, row_breakpoint = (
        Observer(tmp_path, reader("topic"), History(None)),
        RowBreakpoint(schema(own), "sink"),
    )
    written, when = Written(tmp_path / "c"), trigger("rows", 0, batch=1)
    step = Step(when=when, do=fault("crash mid-sink"))
    try:
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(Schedule((step,), context(own, observer, row_breakpoint))._wait, step, 0)
            until("the hook", lambda: observer._hook is not None, within_s=60.0)
            written.plan(0, 3)
            inserted(own, 1, 2, 3).join(60.0)
            written.commit(0)
            until("the trigger to be armed", lambda: row_breakpoint._locked, within_s=60.0)
            written.plan(1, 5)
            writer = inserted(own, 4, 5)
            moment = waiting.result(60.0)
        assert moment.blocked is not None and (moment.blocked.rows, moment.batch) == (3, 1)
        assert count(own) == 3
        row_breakpoint.release()
        writer.join(60.0)
    finally:
        observer.close()
        row_breakpoint.close()


def test_a_row_that_slips_by_while_the_next_one_is_asked_for_leaves_it_unarmed() -> None:
    counts = iter([5, 7, 7, 7])
    hold: list[int] = []
    slippery: Any = SimpleNamespace(rows=lambda: next(counts), block_after=hold.append, blocked=lambda: None)
    assert not armed(slippery, 0)
    assert armed(slippery, 0)
    assert hold == [5, 7]
