"""A ledger that is asked once answers as one that is asked each time does: what is wrong there is wrong here."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from pathlib import Path

import pyarrow as pa
import pytest

from harness.ledger import Ledger, Source
from harness.run_folder import ledger
from tests.asked_once import AskedOnce

pytestmark = pytest.mark.usefixtures("asked_once")

SQL = "select _offset from ledger"
QUESTIONS = [
    methodcaller("table", SQL),
    methodcaller("shape", SQL),
    methodcaller("aggregates", SQL),
    methodcaller("batches"),
    methodcaller("ranges"),
    methodcaller("columns"),
    methodcaller("size"),
    lambda ledger: list(ledger.origins(["_offset"])),
]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    columns = list(zip((0, 0, 1_700_000_000_000, None, b"a", 0), (0, 1, 1_700_000_000_001, None, b"b", 1), strict=True))
    arrays = [pa.array(list(column), type=field.type) for column, field in zip(columns, ledger.SOURCE, strict=True)]
    ledger.write_source(tmp_path / "source.parquet", [pa.record_batch(arrays, schema=ledger.SOURCE)])
    return Source(parquet=tmp_path / "source.parquet", columns=())


@pytest.mark.parametrize("ask", QUESTIONS)
def test_what_has_been_closed_answers_nothing_known_or_new(source: Source, ask: Callable[[Ledger], object]) -> None:
    with AskedOnce(source, where="by hand") as first:
        answer = ask(first)
    with AskedOnce(source, where="by hand") as again:
        assert ask(again) == answer
    for closed in (first, again):
        with pytest.raises(AssertionError, match="by hand was asked after it had been closed"):
            ask(closed)
