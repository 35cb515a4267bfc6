"""Reads the payments back that the pipelines beside write into SQLite: `sink: {python: read_sqlite:payments}`.

It runs in a process of its own for each reading. One statement sees one state of the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa

PAYMENT = pa.schema(
    [
        ("id", pa.int64()),
        ("account", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("currency", pa.string()),
        ("event_time", pa.timestamp("us")),
    ]
)
ROWS = 1000
THERE = "select count(*) from sqlite_master where name = 'payments'"


def payments(namespace: SimpleNamespace) -> Iterator[pa.Table | pa.RecordBatch]:
    """All of them; nothing at all while there is no such table."""
    path = Path(namespace.path) / "payments.db"
    if not path.is_file():
        return
    with closing(sqlite3.connect(path)) as database:
        if not database.execute(THERE).fetchone()[0]:
            return
        yield PAYMENT.empty_table()
        found = database.execute("select id, account, amount, currency, event_time from payments")
        while rows := found.fetchmany(ROWS):
            columns = zip(*map(_typed, rows), strict=True)
            yield pa.table(list(columns), schema=PAYMENT)


def _typed(row: tuple[int, str, str, str, str]) -> tuple[int, str, Decimal, str, datetime]:
    number, account, amount, currency, at = row
    return number, account, Decimal(amount), currency, datetime.fromisoformat(at)
