"""How many rows of a sink are gone between two readings of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.sinks.table import FINGERPRINTS, SinkColumn, SinkTable, gone, save

COLUMNS = tuple(SinkColumn(name=name, type="text", family="text") for name in ("id", "account"))


def kept(folder: Path, *rows: tuple[str, str], form: str = "whole", unreadable: str = "", absent: bool = False) -> Path:
    table = SinkTable(
        name="payments", kind="postgres", target="payments", columns=COLUMNS, rows=[*rows], form=form,
        unreadable=unreadable, absent=absent,
    )  # fmt: skip
    save(folder, 0, table)
    return folder


def test_rows_that_are_gone_or_changed_are_counted_one_by_one(tmp_path: Path) -> None:
    before = kept(tmp_path / "a", ("1", "x"), ("1", "x"), ("2", "x"), ("3", "x"))
    after = kept(tmp_path / "b", ("3", "y"), ("1", "x"), ("4", "x"), ("2", "x"))
    assert gone(before, after, 0) == (2, 4)
    assert gone(before, before, 0) == (0, 4)


def test_fingerprints_are_compared_with_fingerprints_and_counted_against_whole_rows(tmp_path: Path) -> None:
    before = kept(tmp_path / "a", ("1", "f1"), ("2", "f2"), form=FINGERPRINTS)
    assert gone(before, kept(tmp_path / "b", ("1", "f1"), ("2", "f3"), form=FINGERPRINTS), 0) == (1, 2)
    assert gone(before, kept(tmp_path / "c"), 0) == (2, 2)


def test_a_sink_that_is_not_there_any_more_has_lost_all_and_one_that_cannot_be_read_nothing(tmp_path: Path) -> None:
    before = kept(tmp_path / "a", ("1", "x"))
    assert gone(before, kept(tmp_path / "b", unreadable="no such table", absent=True), 0) == (1, 1)
    assert gone(before, kept(tmp_path / "c", unreadable="no answer"), 0) == (0, 1)


def test_a_reading_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    before = kept(tmp_path / "a", ("1", "x"))
    (before / "sink" / "0.parquet").write_text("no parquet", encoding="utf-8")
    with pytest.raises(HarnessError, match="damaged"):
        gone(before, kept(tmp_path / "b", ("1", "x")), 0)
