"""The sink `iceberg`: what is read back of real Iceberg tables, which snapshot of them, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record

from harness.checkers.cells import Row
from harness.components.iceberg.sink import rows as iceberg_rows
from harness.errors import StackError, UsageError
from harness.resources import Resources
from harness.scenario import Sink
from harness.session.part_folders import Folder
from harness.sinks.arrow import FETCH_ROWS
from harness.sinks.reading import busy, columns, keep, mark, read
from harness.sinks.table import load
from harness.sinks.table_format import OpenTable
from tests import arrow_values, read_ahead, spark_tables
from tests.arrow_values import DAY, Value, arrives, payments, table_of
from tests.laws import FAULTS
from tests.planted import is_found, plant
from tests.provided import Own

PAYMENTS = Sink(kind="iceberg", target="shop.payments")


class Lake:
    """A warehouse whose tables pyiceberg writes, numbered as a Hadoop catalog numbers them."""

    def __init__(self, folder: Path) -> None:
        self.own: Own = {"iceberg": Resources(label="iceberg", at=Folder(folder))}
        self.table = folder / "shop" / "payments"
        self.catalog = SqlCatalog("tests", uri="sqlite:///:memory:", warehouse=str(folder))
        self.catalog.create_namespace("shop")
        self.made = 0

    def write(self, rows: pa.Table, *, overwrite: bool = False) -> None:
        name = "shop.payments"
        if not self.catalog.table_exists(name):
            self.catalog.create_table(name, rows.schema, location=str(self.table))
            self.number()
        table = self.catalog.load_table(name)
        (table.overwrite if overwrite else table.append)(rows)
        self.number()

    def number(self) -> None:
        self.made += 1
        location = self.catalog.load_table("shop.payments").metadata_location.removeprefix("file://")
        shutil.copy(location, self.table / "metadata" / f"v{self.made}.metadata.json")

    def rows(self) -> list[Row]:
        found = read(PAYMENTS, self.own)
        assert found.unreadable == ""
        return sorted(found.rows, key=lambda row: int(row[0] or 0))


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path)
    yield made
    made.catalog.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_all_fourteen_planted_faults_are_found(lake: Lake, fault: str) -> None:
    good, found, must = plant(fault)
    half = len(found) // 2
    lake.write(payments(found[:half]))
    lake.write(payments(found[half:]))
    is_found(good, read(PAYMENTS, lake.own), must)


EXACT: list[Value] = [
    *arrow_values.EXACT,
    (pa.int32(), 2**31 - 1, "number", "2147483647"),
    (pa.time64("us"), DAY.time(), "time", "10:00:00.123456"),
]


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_every_type_arrives_exactly(lake: Lake, case: Value) -> None:
    lake.write(table_of(case))
    arrives(case, PAYMENTS, lake.own)


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_any_text_arrives_as_it_is(lake: Lake, texts: list[str | None]) -> None:
    made: list[Row] = [(str(at), text, "1") for at, text in enumerate(texts)]
    lake.write(payments(made), overwrite=True)
    assert lake.rows() == made


def test_more_rows_than_one_fetch_in_bounded_parts(lake: Lake) -> None:
    lake.write(pa.table({"id": range(45_001)}))
    with OpenTable(lake.table, iceberg_rows).reading() as found:
        parts = [len(part) for part in found.parts]
    assert sum(parts) == 45_001 and max(parts) <= FETCH_ROWS
    assert len(set(lake.rows())) == 45_001


def test_a_file_is_read_when_its_rows_are_asked_for(lake: Lake) -> None:
    for number in range(read_ahead.FILES):
        lake.write(read_ahead.file(number))
    assert read_ahead.decoded(iceberg_rows.scanned(iceberg_rows.opened(lake.table))) < 3


def test_rows_are_those_of_one_snapshot_and_files_without_one_are_none(lake: Lake) -> None:
    lake.write(payments([("1", "a", "5")]))
    (data,) = (lake.table / "data").glob("*.parquet")
    (lake.table / "data" / "00000-unlisted.parquet").write_bytes(data.read_bytes())
    with OpenTable(lake.table, iceberg_rows).reading() as found:
        lake.write(payments([("2", "b", "6")]))
        assert [row for part in found.parts for row in part] == [("1", "a", "5")]
        before = found.version
    now = read(PAYMENTS, lake.own)
    assert len(now.rows) == 2 and now.version == mark(PAYMENTS, lake.own) != before


def test_the_newest_number_counts_whatever_the_hint_says(lake: Lake) -> None:
    for number in range(1, 6):
        lake.write(payments([(str(number), "a", "5")]))
        lake.number()
    (lake.table / "metadata" / "version-hint.text").write_text("3")
    assert lake.made == 11 and [row[0] for row in lake.rows()] == ["1", "2", "3", "4", "5"]


def test_the_snapshot_stays_with_the_reading(lake: Lake, tmp_path: Path) -> None:
    lake.write(payments([("1", "a", "5")]))
    assert keep(tmp_path / "kept", 0, PAYMENTS, lake.own, rows_max=10, wait_ms=1000) == 1
    kept = load(tmp_path / "kept", 0)
    assert kept is not None and kept.version == mark(PAYMENTS, lake.own)


def test_its_mark_changes_with_each_snapshot(lake: Lake) -> None:
    seen = [mark(PAYMENTS, lake.own)]
    assert seen == ["no such table"] and busy(PAYMENTS, lake.own) == ""
    for overwrite in (False, False, True):
        lake.write(payments([("1", "a", "5")]), overwrite=overwrite)
        seen.append(mark(PAYMENTS, lake.own))
    assert len({*seen}) == len(seen)


def test_a_table_without_a_snapshot_is_empty_and_none_is_missing(lake: Lake) -> None:
    found = read(PAYMENTS, lake.own)
    assert found.absent and "there is none in" in found.unreadable
    assert columns(PAYMENTS, lake.own) is None
    lake.catalog.create_table("shop.payments", pa.schema([("id", pa.int64())]), location=str(lake.table))
    lake.number()
    found = read(PAYMENTS, lake.own)
    assert (found.unreadable, found.rows, [c.name for c in found.columns]) == ("", [], ["id"])


def test_what_is_not_known_to_be_read_right_is_refused_by_name(lake: Lake) -> None:
    lake.write(pa.table({"id": [1], "x": pa.array([[1]], pa.list_(pa.int64()))}))
    assert "the Iceberg table payments has a column x of type BIGINT[]" in read(PAYMENTS, lake.own).unreadable
    metadata: dict[str, Any] = json.loads((lake.table / "metadata" / "v2.metadata.json").read_text())
    third = metadata | {"format-version": 3, "next-row-id": 0}
    (lake.table / "metadata" / "v3.metadata.json").write_text(json.dumps(third))
    with pytest.raises(UsageError, match="the Iceberg table payments; it has format version 3"):
        mark(PAYMENTS, lake.own)


@pytest.mark.parametrize(
    ("strange", "said"),
    [
        ({"file_format": FileFormat.AVRO}, "it has a file in the format AVRO"),
        ({"content": DataFileContent.EQUALITY_DELETES}, "it has equality deletes"),
    ],
)
def test_a_file_that_is_not_known_to_be_read_right_is_refused(lake: Lake, strange: dict[str, Any], said: str) -> None:
    lake.write(payments([("1", "a", "5")]))
    (data,) = (lake.table / "data").iterdir()
    plain: dict[str, Any] = {
        "content": DataFileContent.DATA,
        "file_format": FileFormat.PARQUET,
        "file_path": f"file://{data}",
    }
    file = DataFile.from_args(**plain | strange, partition=Record(), record_count=1, file_size_in_bytes=9)
    file.spec_id = 0
    changed = lake.catalog.load_table("shop.payments").transaction()
    with changed, changed.update_snapshot().fast_append() as added:
        added.append_data_file(file)
    lake.number()
    assert f"asked to read the Iceberg table payments; {said}" in read(PAYMENTS, lake.own).unreadable


def test_metadata_that_a_writer_removes_are_looked_for_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.write(payments([("1", "a", "5")]))
    lake.number()
    read_it = StaticTable.from_metadata

    def removed(location: str) -> Any:
        if location.endswith("v3.metadata.json"):
            shutil.move(location, location.replace("v3.", "v4."))
        return read_it(location)

    monkeypatch.setattr(StaticTable, "from_metadata", removed)
    assert [row[0] for row in lake.rows()] == ["1"]


@pytest.mark.parametrize("torn", ["metadata/v2.metadata.json", "data/*.parquet", "metadata/*.avro"])
def test_what_is_torn_is_told(lake: Lake, torn: str) -> None:
    lake.write(payments([(str(at), "a", "5") for at in range(100)]))
    for path in lake.table.glob(torn):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StackError, match="asked to read the Iceberg table payments; saw "):
        read(PAYMENTS, lake.own)


@pytest.mark.stack
@pytest.mark.prove
def test_what_spark_deletes_merges_and_renames_is_read_right(tmp_path: Path) -> None:
    spark_tables.are_read_right("iceberg", tmp_path, many=2)


@pytest.mark.stack
@pytest.mark.prove
def test_all_fourteen_planted_faults_are_found_in_what_spark_wrote(tmp_path: Path) -> None:
    spark_tables.show_each_fault("iceberg", tmp_path, named="shop.{}")
