"""Runs a scenario's SQL before its pipeline starts."""

from __future__ import annotations

from contextlib import closing

import psycopg2

from harness.errors import SetupError
from harness.resources import Resources


def set_up(own: Resources, text: str) -> None:
    """All of it in one transaction. Raises SetupError."""
    try:
        with (
            closing(psycopg2.connect(own.at.dsn)) as connection,
            connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(text)
    except psycopg2.Error as failure:
        request = f"asked {own.label} to run the scenario's setup"
        raise SetupError(f"{request}; saw {str(failure).strip()}. Mend `setup`: {text.strip()}") from failure
