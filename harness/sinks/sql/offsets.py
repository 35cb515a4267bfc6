"""Where a pipeline stands that keeps its offsets in a table: a query of its scenario finds them."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from harness.checkpoint import Offsets
from harness.component import Followed, remembered
from harness.errors import SetupError, StackError
from harness.sinks.base import statements
from harness.sinks.sql.part import SqlPart
from harness.sinks.sql.table import SqlTable

STATEMENT_S = 5
WAIT_MS = 2_000


def followed(table: SqlTable) -> Followed:
    """Return a query that gives (partition, next offset). Raises StackError; its `offsets` raise SetupError for a wrong
    query."""
    part, query = table.own, table.target
    connection = _connected(part)
    # Several threads ask, and not every client's connection takes more than one at a time.
    one_at_a_time = threading.Lock()

    def read() -> Offsets | None:
        nonlocal connection
        try:
            with one_at_a_time, connection.cursor() as cursor:
                cursor.execute(query)
                return {int(row[0]): int(row[1]) for row in cursor.fetchall()}
        except (part.error, IndexError, TypeError, ValueError) as failure:
            if part.waited(failure):
                return None  # the pipeline holds a lock on it, maybe while a fault holds the pipeline
            if part.lost(connection):
                # The server was killed, and is asked again once it is back.
                with one_at_a_time, suppress(StackError):
                    connection = _connected(part)
                return None
            request = "asked the pipeline's progress query for rows of (partition, next offset)"
            saw = f"saw {part.words(failure)}. Mend `progress` in the scenario: {query}"
            raise SetupError(f"{request}; {saw}") from failure

    def close() -> None:
        connection.close()

    return Followed(remembered(read), close, lambda: statements(table.writing(wait_ms=WAIT_MS)[0]))


def _connected(part: SqlPart) -> Any:
    try:
        connection = part.connect("onceproof progress")
        with connection.cursor() as cursor:
            cursor.execute(part.limit.format(seconds=STATEMENT_S))
    except part.error as failure:
        raise StackError(f"asked {part.title} for the pipeline's progress; saw {part.words(failure)}") from failure
    return connection
