"""The tripwire stops a sink's writer at one exact row, whatever way it writes; on a real Postgres."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest
from psycopg2.extras import execute_values

from harness.stack.base import Lease, Stack
from harness.triggers.tripwire import Tripwire
from harness.wait import until

pytestmark = pytest.mark.stack
ROWS = [(n, f"row {n}") for n in range(30)]


@pytest.fixture
def lease(stack: Stack, request: pytest.FixtureRequest) -> Iterator[Lease]:
    lease = stack.lease(f"tripwire{abs(hash(request.node.name)) % 10**8}", partitions=1)
    with psycopg2.connect(lease.dsns["main"]) as connection, connection.cursor() as cursor:
        cursor.execute("create table sink (id int primary key, word text)")
    connection.close()
    yield lease
    stack.release(lease)


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


def count(lease: Lease) -> int:
    with psycopg2.connect(lease.dsns["main"]) as connection, connection.cursor() as cursor:
        cursor.execute("select count(*) from sink")
        (found,) = cursor.fetchone() or (0,)
    connection.close()
    return int(found)


@pytest.mark.parametrize(
    ("write", "seen_while_held", "seen_after_death"),
    [(autocommit, 12, 13), (one_transaction, 0, 0), (many_a_statement, 0, 0)],
)
def test_a_writer_stands_after_exactly_k_rows_and_what_stays_after_its_death_is_postgres_answer(
    lease: Lease, write: Callable[[Any], None], seen_while_held: int, seen_after_death: int
) -> None:
    tripwire = Tripwire(lease.dsns["main"], lease.schema, "sink")
    assert (tripwire.rows(), tripwire.held()) == (0, None)
    tripwire.hold_after(12)
    writer = psycopg2.connect(lease.dsns["main"])
    thread = threading.Thread(target=lambda: attempt(write, writer), daemon=True)
    thread.start()
    until("the writer to stand", tripwire.held, within_s=10.0)
    held = tripwire.held()
    assert held is not None
    assert (held.rows, held.backend) == (12, writer.info.backend_pid)
    assert held.client is not None and held.client[0] == "127.0.0.1"
    assert count(lease) == seen_while_held
    # The client dies as a killed process does: its socket closes under the server's feet.
    theirs = socket.socket(fileno=writer.fileno())
    theirs.shutdown(socket.SHUT_RDWR)
    theirs.detach()
    tripwire.let_go()
    thread.join(10.0)
    until("the server to notice", lambda: gone(lease, held.backend), within_s=10.0)
    assert count(lease) == seen_after_death
    tripwire.close()


def attempt(write: Callable[[Any], None], connection: Any) -> None:
    with contextlib.suppress(psycopg2.Error):
        write(connection)


def gone(lease: Lease, backend: int) -> bool:
    with psycopg2.connect(lease.dsns["main"]) as connection, connection.cursor() as cursor:
        cursor.execute("select 1 from pg_stat_activity where pid = %s", (backend,))
        found = cursor.fetchone()
    connection.close()
    return found is None


def test_rows_of_a_transaction_that_never_commits_are_counted(lease: Lease) -> None:
    tripwire = Tripwire(lease.dsns["main"], lease.schema, "sink")
    writer = psycopg2.connect(lease.dsns["main"])
    with writer.cursor() as cursor:
        cursor.execute("insert into sink values (1, 'a'), (2, 'b')")
    writer.rollback()
    writer.close()
    assert tripwire.rows() == 2
    assert count(lease) == 0
    tripwire.close()


def test_it_can_be_armed_again_after_letting_go(lease: Lease) -> None:
    tripwire = Tripwire(lease.dsns["main"], lease.schema, "sink")
    for round_ in range(2):
        tripwire.hold_after(tripwire.rows())
        writer = psycopg2.connect(lease.dsns["main"])
        writer.autocommit = True
        row = (round_, "a")
        thread = threading.Thread(
            target=lambda w=writer, r=row: w.cursor().execute("insert into sink values (%s, %s)", r)
        )
        thread.start()
        until("the writer to stand", tripwire.held, within_s=10.0)
        tripwire.let_go()
        thread.join(10.0)
        writer.close()
        assert count(lease) == round_ + 1
    tripwire.close()
