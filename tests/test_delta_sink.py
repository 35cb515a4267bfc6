"""The sink `delta`: what is read back of real Delta tables, which version of them, and what is refused."""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import load as scenarios
from harness.checkers.cells import Row
from harness.components.delta.sink import rows as delta_rows
from harness.errors import ScenarioError, StackError, UsageError
from harness.machine import java
from harness.resources import Resources
from harness.scenario import Sink
from harness.session.part_folders import Folder
from harness.session.session import Session
from harness.sinks.arrow import FETCH_ROWS
from harness.sinks.reading import busy, columns, keep, mark, opened, read
from harness.sinks.table import load
from harness.sinks.table_folders import TableFolders
from harness.sinks.table_format import OpenTable
from tests import arrow_values, read_ahead, spark_tables
from tests.arrow_values import Value, arrives, payments, table_of
from tests.laws import FAULTS
from tests.limits import examples
from tests.planted import is_found, plant
from tests.provided import Own

PAYMENTS = Sink(kind="delta", target="payments")


@pytest.fixture
def own(tmp_path: Path) -> Own:
    return {"delta": Resources(label="delta", at=Folder(tmp_path))}


def folder(own: Own, name: str = "payments") -> Path:
    found: Folder = own["delta"].at
    return found.folder / name


def write(own: Own, table: pa.Table, **more: Any) -> None:
    more.setdefault("mode", "append")
    deltalake.write_deltalake(folder(own), table, **more)


def rows(own: Own) -> list[Row]:
    found = read(PAYMENTS, own)
    assert found.unreadable == ""
    return sorted(found.rows, key=lambda row: int(row[0] or 0))


@pytest.mark.parametrize("fault", FAULTS)
def test_all_fourteen_planted_faults_are_found(own: Own, fault: str) -> None:
    good, found, must = plant(fault)
    half = len(found) // 2
    write(own, payments(found[:half]))
    write(own, payments(found[half:]))
    is_found(good, read(PAYMENTS, own), must)


EXACT: list[Value] = [
    *arrow_values.EXACT,
    (pa.int8(), -128, "number", "-128"),
    (pa.int16(), -32768, "number", "-32768"),
    (pa.int32(), 2**31 - 1, "number", "2147483647"),
    (pa.decimal128(38, 38), Decimal("1E-38"), "number", "0." + "0" * 37 + "1"),
    (pa.float64(), 5e-324, "float", "5e-324"),
    (pa.float64(), float("-inf"), "float", "-inf"),
    (pa.binary(), b"", "bytes", ""),
    (pa.date32(), date(1, 1, 1), "date", "0001-01-01"),
    (pa.float64(), None, "float", None),
]


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_every_type_arrives_exactly(own: Own, case: Value) -> None:
    write(own, table_of(case))
    arrives(case, PAYMENTS, own)


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_any_text_arrives_as_it_is(own: Own, texts: list[str | None]) -> None:
    made: list[Row] = [(str(at), text, "1") for at, text in enumerate(texts)]
    write(own, payments(made), mode="overwrite")
    assert rows(own) == made


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.lists(st.none() | st.floats(width=64), min_size=1))
def test_any_float_arrives_as_the_double_it_is(own: Own, numbers: list[float | None]) -> None:
    write(own, pa.table({"id": range(len(numbers)), "x": pa.array(numbers, pa.float64())}), mode="overwrite")
    assert [row[1] for row in rows(own)] == [None if each is None else repr(each) for each in numbers]


def test_partitions_and_columns_that_came_later_are_read(own: Own) -> None:
    write(own, pa.table({"id": [1, 2], "day": ["a=b/c", None]}), partition_by=["day"])
    write(own, pa.table({"id": [3], "day": ["ü"], "more": [7]}), schema_mode="merge")
    assert rows(own) == [("1", "a=b/c", None), ("2", None, None), ("3", "ü", "7")]


def test_names_that_differ_in_case_alone_are_kept_as_they_are(own: Own) -> None:
    write(own, pa.table({"id": [1], 'A "name"': ["x"]}))
    assert [column.name for column in read(PAYMENTS, own).columns] == ["id", 'A "name"']


def test_more_rows_than_one_fetch_in_bounded_parts(own: Own) -> None:
    write(own, pa.table({"id": range(45_001)}))
    with OpenTable(folder(own), delta_rows).reading() as found:
        parts = [len(part) for part in found.parts]
    assert sum(parts) == 45_001 and max(parts) <= FETCH_ROWS
    assert len(set(rows(own))) == 45_001


def test_a_file_is_read_when_its_rows_are_asked_for(own: Own) -> None:
    for number in range(read_ahead.FILES):
        write(own, read_ahead.file(number))
    assert read_ahead.decoded(delta_rows.scanned(delta_rows.opened(folder(own)))) < 3


def test_rows_are_those_of_one_version_and_files_without_a_version_are_none(own: Own) -> None:
    write(own, payments([("1", "a", "5")]))
    (data,) = folder(own).glob("*.parquet")
    (folder(own) / "part-00000-unlisted.snappy.parquet").write_bytes(data.read_bytes())
    with OpenTable(folder(own), delta_rows).reading() as found:
        write(own, payments([("2", "b", "6")]))
        assert [row for part in found.parts for row in part] == [("1", "a", "5")]
        assert found.version.startswith("version 0 of ")
    now = read(PAYMENTS, own)
    assert len(now.rows) == 2 and now.version.startswith("version 1 of ")


def test_the_version_stays_with_the_reading(own: Own, tmp_path: Path) -> None:
    write(own, payments([("1", "a", "5")]))
    assert keep(tmp_path / "kept", 0, PAYMENTS, own, rows_max=10, wait_ms=1000) == 1
    kept = load(tmp_path / "kept", 0)
    assert kept is not None and kept.version == mark(PAYMENTS, own)


def test_its_mark_changes_with_each_version_and_when_it_is_made_anew(own: Own) -> None:
    seen = [mark(PAYMENTS, own)]
    assert seen == ["no such table"]
    for mode in ("append", "append", "overwrite"):
        write(own, payments([("1", "a", "5")]), mode=mode)
        seen.append(mark(PAYMENTS, own))
    for path in sorted(folder(own).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    seen.append(mark(PAYMENTS, own))
    write(own, payments([("1", "a", "5")]))
    seen.append(mark(PAYMENTS, own))
    assert len({*seen}) == len(seen) - 1 and seen[4] == "no such table"
    assert busy(PAYMENTS, own) == ""


def test_rows_that_were_deleted_are_gone(own: Own) -> None:
    write(own, payments([("1", "a", "5"), ("2", "b", "6")]))
    deltalake.DeltaTable(folder(own)).delete("id = 1")
    assert rows(own) == [("2", "b", "6")]
    deltalake.DeltaTable(folder(own)).create_checkpoint()
    assert rows(own) == [("2", "b", "6")]


def test_what_is_not_there_yet_is_missing(own: Own) -> None:
    assert columns(PAYMENTS, own) is None
    found = read(PAYMENTS, own)
    assert found.absent and "there is none in" in found.unreadable
    (folder(own) / "_delta_log").mkdir(parents=True)
    found = read(PAYMENTS, own)
    assert found.absent and "no version of it is there yet" in found.unreadable


@pytest.mark.parametrize(
    ("kind", "value"), [(pa.list_(pa.int64()), [1]), (pa.struct([("a", pa.int64())]), {"a": 1})], ids=str
)
def test_a_type_that_cannot_be_compared_exactly_is_refused_by_name(own: Own, kind: pa.DataType, value: object) -> None:
    write(own, pa.table({"id": [1], "x": pa.array([value], kind)}))
    found = read(PAYMENTS, own)
    assert "the Delta table payments has a column x of type" in found.unreadable and not found.absent


def test_a_feature_that_is_not_known_to_be_read_right_is_refused_by_name(own: Own) -> None:
    write(own, payments([("1", "a", "5")]))
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["typeWidening"]}
    line = json.dumps({"protocol": {**protocol, "writerFeatures": ["typeWidening"]}})
    (folder(own) / "_delta_log" / f"{1:020}.json").write_text(line)
    found = read(PAYMENTS, own)
    assert "asked to read the Delta table payments; it has typeWidening" in found.unreadable
    with pytest.raises(UsageError, match="typeWidening"):
        mark(PAYMENTS, own)


@pytest.mark.parametrize(("features", "refused"), [(["deletionVectors"], True), (["v2Checkpoint"], True), ([], False)])
@pytest.mark.parametrize(("kind", "instant"), [(pa.timestamp("us", "UTC"), True), (pa.timestamp("us"), False)], ids=str)
def test_instants_that_would_wrap_around_are_refused(
    own: Own, features: list[str], refused: bool, kind: pa.DataType, instant: bool
) -> None:
    write(own, pa.table({"id": [1], "seen": pa.array([None], kind)}))
    features = [*features, "timestampNtz"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    (folder(own) / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"protocol": protocol}))
    words = f"it has {features[0]} and the column seen of type timestamp, which is not known to be read right"
    found = read(PAYMENTS, own)
    assert (words in found.unreadable) == (refused and instant) == bool(found.unreadable)
    assert found.rows == ([] if refused and instant else [("1", None)])


@pytest.mark.parametrize("torn", ["log", "data"])
def test_what_is_torn_is_told(own: Own, torn: str) -> None:
    write(own, payments([(str(at), "a", "5") for at in range(100)]))
    paths = list((folder(own) / "_delta_log").glob("*.json")) if torn == "log" else list(folder(own).glob("*.parquet"))
    paths[0].write_bytes(paths[0].read_bytes()[:100])
    with pytest.raises(StackError, match="asked to read the Delta table payments; saw "):
        read(PAYMENTS, own)


def test_rows_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "program.py").touch()
    (tmp_path / "one.yaml").write_text(
        "name: x\npipeline: program.py\nsink: {delta: payments, expected: select id from ledger, key: [id]}\n"
        "schedule: [{when: {rows: 5, batch: 2}, do: crash mid-sink}]\n"
    )
    with pytest.raises(ScenarioError, match=r"rows cannot be counted: no sink counts its rows"):
        scenarios.load(tmp_path / "one.yaml")


@pytest.mark.subprocess
def test_a_run_has_a_folder_for_each_part_and_leaves_none() -> None:
    with Session() as session:
        made = TableFolders(session, java.find(), component="delta", reader="deltalake")
        made.start()
        given = made.provide("r1", {"": {}, "second": {}})
        paths = [Path(each.placeholders["path"]) for each in given.values()]
        assert [each.label for each in given.values()] == ["delta", "delta.second"] and paths[0] != paths[1]
        names = given[""].placeholders["jars"].split(",")
        assert [Path(each).name for each in names] == made.describe()["jars"]
        # Their versions, and what comes with them, follow the installed Spark.
        assert {"delta-spark", "delta-storage"} <= {re.split(r"[_-]\d", name)[0] for name in made.describe()["jars"]}
        made.check()
        made.drop("r1", given)
        made.drop("r1", given)
        assert not any(path.exists() for path in paths)
        made.close()


def test_a_run_without_the_part_has_no_table() -> None:
    assert opened(PAYMENTS, {}) is None


# In CI: test_iceberg_sink.py for a table format that Spark writes, test_proving.py for Delta.
@pytest.mark.stack
@pytest.mark.prove
def test_what_spark_writes_with_features_that_a_reader_must_know_is_read_right(tmp_path: Path) -> None:
    spark_tables.are_read_right("delta", tmp_path, many=4)


@pytest.mark.stack
@pytest.mark.prove
def test_all_fourteen_planted_faults_are_found_in_what_spark_wrote(tmp_path: Path) -> None:
    spark_tables.show_each_fault("delta", tmp_path)
