"""The plug-in for mutation runs: whoever judges gets its answers, and DuckDB is asked for each once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.ledger import functions
from harness.run_folder import database
from tests import recalled
from tests.test_ledger_queries import opened, source, write

__all__ = ["source"]
COUNT = "select count(*) as n from ledger"
LARGEST = "select max(id) as largest from ledger"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The connections that were made, beside the one that asks for DuckDB's functions."""
    functions.known()
    out: list[object] = []
    real = database.connection

    def counted() -> Any:
        out.append(real())
        return out[-1]

    monkeypatch.setattr(recalled, "connection", counted)
    monkeypatch.setattr(recalled, "_ANSWERS", {})
    recalled.installed(monkeypatch)
    return out


def test_the_same_of_the_same_records_is_asked_once(source: Path, made: list[object]) -> None:
    for _ in range(2):
        with opened(source) as db:
            assert [db.table(sql).rows for sql in (COUNT, LARGEST)] == [[("20",)], [("19",)]]
            assert db.table(COUNT, batch=7).rows == [("0",)]
    assert len(made) == 1


def test_other_records_are_asked_anew(source: Path, tmp_path: Path, made: list[object]) -> None:
    with opened(source) as db:
        assert db.table(COUNT).rows == [("20",)]
    with opened(write(tmp_path / "other.parquet", [(0, 0, None, b'{"id": 4}')])) as db:
        assert (db.table(COUNT).rows, db.table(LARGEST).rows) == ([("1",)], [("4",)])
    assert len(made) == 2


def test_what_comes_after_answers_that_were_recalled_is_right(source: Path, made: list[object]) -> None:
    with opened(source) as db:
        db.table(COUNT)
    with opened(source) as db:
        assert db.table(COUNT).rows == [("20",)]
        assert db.table(LARGEST).rows == [("19",)]
    assert len(made) == 2


def test_a_refusal_is_recalled_as_one(source: Path, made: list[object]) -> None:
    for _ in range(2):
        with opened(source) as db, pytest.raises(UsageError, match="nobody"):
            db.table("select nobody from ledger")
    assert len(made) == 1
