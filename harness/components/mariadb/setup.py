"""Runs a scenario's SQL before its pipeline starts."""

from __future__ import annotations

from contextlib import closing

import pymysql

from harness.components.mariadb.database import words
from harness.errors import SetupError
from harness.resources import Resources


def set_up(own: Resources, text: str) -> None:
    """Statement by statement: in MariaDB each that makes a table commits. Raises SetupError."""
    try:
        with closing(own.at.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(text)
            while cursor.nextset():
                pass
    except pymysql.Error as failure:
        request = f"asked {own.label} to run the scenario's setup"
        raise SetupError(f"{request}; saw {words(failure)}. Mend `setup`: {text.strip()}") from failure
