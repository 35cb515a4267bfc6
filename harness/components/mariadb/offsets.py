"""Where a pipeline stands that keeps its offsets in a table: a query of its scenario finds them."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pymysql
from pymysql.constants import ER

from harness.checkpoint import Offsets
from harness.component import Followed, remembered
from harness.components.mariadb.database import words
from harness.components.mariadb.run_database import Database
from harness.components.mariadb.sink.rows import TOOK_TOO_LONG
from harness.components.mariadb.sink.writers import writing
from harness.errors import SetupError, StackError
from harness.sinks.base import statements

STATEMENT_S = 5
WAIT_MS = 2_000
WAITED = (ER.LOCK_WAIT_TIMEOUT, TOOK_TOO_LONG)
"""For a lock, or for longer than `max_statement_time`."""


def followed(own: Database, query: str) -> Followed:
    """`query` gives (partition, next offset). Raises StackError; its `offsets` raise SetupError for a wrong query."""
    connection = _connected(own)
    # Several threads ask, and a connection of PyMySQL is for one at a time.
    one_at_a_time = threading.Lock()

    def read() -> Offsets | None:
        nonlocal connection
        try:
            with one_at_a_time, connection.cursor() as cursor:
                cursor.execute(query)
                return {int(row[0]): int(row[1]) for row in cursor.fetchall()}
        except (pymysql.Error, IndexError, TypeError, ValueError) as failure:
            if isinstance(failure, pymysql.Error) and failure.args and failure.args[0] in WAITED:
                return None  # the pipeline holds a lock on it, maybe while a fault holds the pipeline
            if not connection.open:
                # The server was killed, and is asked again once it is back.
                with one_at_a_time, suppress(StackError):
                    connection = _connected(own)
                return None
            request = "asked the pipeline's progress query for rows of (partition, next offset)"
            raise SetupError(f"{request}; saw {words(failure)}. Mend `progress` in the scenario: {query}") from failure

    def close() -> None:
        connection.close()

    return Followed(remembered(read), close, lambda: statements(writing(own, query, wait_ms=WAIT_MS)[0]))


def _connected(own: Database) -> Any:
    try:
        connection = own.connect(name="onceproof progress")
        with connection.cursor() as cursor:
            cursor.execute(f"set max_statement_time = {STATEMENT_S}")
    except pymysql.Error as failure:
        raise StackError(f"asked MariaDB for the pipeline's progress; saw {words(failure)}") from failure
    return connection
