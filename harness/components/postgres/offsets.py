"""Where a pipeline stands that keeps its offsets in a table: a query of its scenario finds them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg2

from harness.checkpoint import Offsets
from harness.component import Followed, remembered
from harness.components.postgres.run_schema import Schema
from harness.components.postgres.sink.writers import writing
from harness.errors import SetupError, StackError
from harness.sinks.base import statements

STATEMENT_MS = 5_000
WAIT_MS = 2_000


def followed(own: Schema, query: str) -> Followed:
    """`query` gives (partition, next offset). Raises StackError; its `offsets` raise SetupError for a wrong query."""
    connection = _connected(own)

    def read() -> Offsets | None:
        nonlocal connection
        try:
            with connection.cursor() as cursor:
                cursor.execute(query)
                return {int(row[0]): int(row[1]) for row in cursor.fetchall()}
        except psycopg2.errors.QueryCanceled:
            return None  # the pipeline holds a lock on it, maybe while a fault holds the pipeline
        except (psycopg2.Error, IndexError, TypeError, ValueError) as failure:
            if connection.closed:
                # The server was killed, and is asked again once it is back.
                with suppress(StackError):
                    connection = _connected(own)
                return None
            request = "asked the pipeline's progress query for rows of (partition, next offset)"
            raise SetupError(f"{request}; saw {failure}. Mend `progress` in the scenario: {query}") from failure

    def close() -> None:
        connection.close()

    return Followed(remembered(read), close, lambda: statements(writing(own.dsn, query, wait_ms=WAIT_MS)[0]))


def _connected(own: Schema) -> Any:
    try:
        connection = psycopg2.connect(own.dsn, application_name="onceproof progress")
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f"set statement_timeout = {STATEMENT_MS}")
    except psycopg2.Error as failure:
        raise StackError(f"asked Postgres for the pipeline's progress; saw {str(failure).strip()}") from failure
    return connection
