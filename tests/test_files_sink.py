"""The sink `files`: which files a reader takes, what is read back of them, and what is refused by its name."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import load as scenarios
from harness.checkers.cells import Row
from harness.components.files.sink import manifest
from harness.errors import ScenarioError, UsageError
from harness.resources import Resources
from harness.scenario import Sink
from harness.session.part_folders import Folder
from harness.sinks.reading import busy, columns, keep, mark, opened, read
from harness.sinks.table import load
from tests import arrow_values
from tests.arrow_values import DAY, Value, arrives, payments, table_of
from tests.laws import FAULTS, good_rows
from tests.limits import examples
from tests.planted import is_found, plant
from tests.provided import Own

PAYMENTS = Sink(kind="files", target="payments")
BY_MANIFEST = Sink(kind="files", target="payments", options={"reader": "manifest"})
TYPED = "id bigint, account string, amount decimal(38,9)"


def as_json(said: str = TYPED, **more: str) -> Sink:
    return Sink(kind="files", target="payments", options={"format": "json", "columns": said, **more})


@pytest.fixture
def own(tmp_path: Path) -> Own:
    return {"files": Resources(label="files", at=Folder(tmp_path))}


def folder(own: Own) -> Path:
    found: Folder = own["files"].at
    return found.folder / "payments"


def write(own: Own, table: pa.Table, place: str = "a.parquet", **more: Any) -> Path:
    path = folder(own) / place
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **more)
    return path


def lines(own: Own, text: str | bytes, place: str = "a.json") -> Path:
    path = folder(own) / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows(own: Own, sink: Sink = PAYMENTS) -> list[Row]:
    found = read(sink, own)
    assert found.unreadable == ""
    return sorted(found.rows, key=lambda row: int(row[0] or 0))


def objects(made: Sequence[Row]) -> str:
    """The same as lines of JSON; what is NULL is left out, as Spark does."""
    out = []
    for key, account, amount in made:
        text = "" if account is None else f', "account": {json.dumps(account)}'
        out.append(f'{{"id": {key}{text}, "amount": {amount}}}\n')
    return "".join(out)


def added(path: Path, action: str = "add") -> str:
    """A line of Spark's manifest."""
    said = {"path": f"file://{quote(str(path))}", "size": path.stat().st_size if path.exists() else 7, "isDir": False}
    said |= {"modificationTime": 1, "blockReplication": 1, "blockSize": 33554432, "action": action}
    return json.dumps(said)


def logged(own: Own, name: str, *entries: str) -> Path:
    path = folder(own) / "_spark_metadata" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["v1", *entries]))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "json", "manifest"])
@pytest.mark.parametrize("fault", FAULTS)
def test_all_fourteen_planted_faults_are_found(own: Own, fault: str, form: str) -> None:
    good, found, must = plant(fault)
    parts = found[: len(found) // 2], found[len(found) // 2 :]
    if form == "json":
        paths = [lines(own, objects(part), f"{number}.json") for number, part in enumerate(parts)]
    else:
        paths = [write(own, payments(part), f"{number}.parquet") for number, part in enumerate(parts)]
    for number, path in enumerate(paths):
        logged(own, str(number), added(path))
    sink = {"parquet": PAYMENTS, "json": as_json(), "manifest": BY_MANIFEST}[form]
    is_found(good, read(sink, own), must)


EXACT: list[Value] = [
    *arrow_values.EXACT,
    (pa.int8(), -128, "number", "-128"),
    (pa.decimal128(38, 38), Decimal("1E-38"), "number", "0." + "0" * 37 + "1"),
    (pa.float64(), float("-inf"), "float", "-inf"),
]


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_every_type_arrives_exactly(own: Own, case: Value) -> None:
    write(own, table_of(case))
    arrives(case, PAYMENTS, own)


@pytest.mark.parametrize("moment", [DAY, datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)])
def test_a_moment_that_spark_writes_as_int96_is_one(own: Own, moment: datetime) -> None:
    table = pa.table({"x": pa.array([moment], pa.timestamp("us"))})
    write(own, table, use_deprecated_int96_timestamps=True)
    found = read(PAYMENTS, own)
    assert found.unreadable == "" and found.columns[0].family == "instant"
    assert found.rows == [(f"{moment.isoformat(timespec='microseconds')}Z",)]


def test_a_moment_that_is_finer_than_duckdb_knows_is_refused_by_name(own: Own) -> None:
    for nanoseconds, words in ((1_000, ""), (1_001, "a.parquet is torn, or cannot be read exactly: Casting from")):
        write(own, pa.table({"x": pa.array([nanoseconds], pa.timestamp("ns", "Europe/Berlin"))}))
        found = read(PAYMENTS, own).unreadable
        assert words in found and bool(words) == bool(found)
    write(own, pa.table({"x": pa.array([1_001], pa.timestamp("ns"))}))
    assert read(PAYMENTS, own).rows == [("1970-01-01T00:00:00.000001001",)]


IN_JSON = [
    ("bigint", "9007199254740993", "9007199254740993"),
    ("decimal(12,2)", "1.50", "1.5"),
    ("double", "0.1", "0.1"),
    ("double", '"NaN"', "nan"),
    ("boolean", "true", "true"),
    ("string", '"Ü \\u0000 😀"', "Ü \0 😀"),
    ("string", "null", None),
    ("date", '"2026-01-31"', "2026-01-31"),
    ("timestamp_ntz", '"2026-01-31T10:00:00.123"', "2026-01-31T10:00:00.123000"),
    ("timestamp", '"2026-01-31T10:00:00.123+02:00"', "2026-01-31T08:00:00.123000Z"),
]


@pytest.mark.parametrize("case", IN_JSON, ids=str)
def test_every_type_of_json_arrives_exactly(own: Own, case: tuple[str, str, str | None]) -> None:
    kind, value, cell = case
    lines(own, f'{{"id": 1, "x": {value}}}\n')
    assert rows(own, as_json(f"id int, x {kind}")) == [("1", cell)]


WRONG = [
    ('{"id": 1, "x": 1.234}\n', "line 1 of a.json cannot be read exactly: column x: .* it has more decimals"),
    ('{"id": 1}\n{"id": 2, "x": 1', "line 2 of a.json cannot be read exactly: has no end: the file is torn"),
    ('{"id": 1}\n{"id": 2, "x":\n', "line 2 of a.json cannot be read exactly: is no JSON"),
    ("[1]\n", "line 1 of a.json cannot be read exactly: is JSON, and no object"),
    (b'{"id": 1, "x": \xff}\n', "line 1 of a.json cannot be read exactly: is no UTF-8"),
    ('{"id": 1, "id": 2}\n', "line 1 of a.json cannot be read exactly: has the field 'id' twice"),
]


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_a_line_that_cannot_be_read_exactly_is_named(own: Own, case: tuple[str | bytes, str]) -> None:
    text, words = case
    lines(own, text)
    found = read(as_json("id int, x decimal(12,2)"), own)
    assert not found.absent and not found.rows
    with pytest.raises(AssertionError, match=words):
        assert not found.unreadable, found.unreadable


def test_json_that_is_packed_is_read_and_told_when_it_is_torn(own: Own) -> None:
    packed = gzip.compress(b'{"id": 1}\n{"id": 2}\n')
    lines(own, packed, "a.json.gz")
    assert rows(own, as_json("id int")) == [("1",), ("2",)]
    lines(own, packed[:-12], "a.json.gz")
    assert "a.json.gz cannot be read exactly" in read(as_json("id int"), own).unreadable


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_any_text_arrives_as_it_is(own: Own, texts: list[str | None]) -> None:
    made: list[Row] = [(str(at), text, "1") for at, text in enumerate(texts)]
    lines(own, objects(made))
    assert rows(own, as_json()) == made
    (folder(own) / "a.json").unlink()
    write(own, payments(made))
    assert rows(own) == made
    (folder(own) / "a.parquet").unlink()


def test_a_column_may_be_called_otherwise_than_its_field(own: Own) -> None:
    lines(own, '{"payment_id": 1}\n')
    assert rows(own, as_json("id bigint of field payment_id")) == [("1",)]


def test_names_that_are_hidden_are_passed_over_and_no_others(own: Own) -> None:
    one = payments([("1", "a", "5")])
    write(own, one, "_x=1/a.parquet")
    for place in ("_spark_metadata/0", ".a.parquet.crc", "_SUCCESS", "_temporary/0/a", "x=1/.b", "a._COPYING_"):
        lines(own, "nothing", place)
    assert rows(own) == [("1", "a", "5", "1")]
    lines(own, "nothing", "_x=1/notes.txt")
    assert "_x=1/notes.txt is torn, or cannot be read exactly" in read(PAYMENTS, own).unreadable


def test_a_partitions_folder_names_columns(own: Own) -> None:
    one = pa.table({"id": [1]})
    write(own, one, "day=2026-01-31/account=a%2Fb%3D%25/a.parquet")
    write(own, pa.table({"id": [2]}), "day=__HIVE_DEFAULT_PARTITION__/account=ü/a.parquet")
    assert rows(own) == [("1", "2026-01-31", "a/b=%"), ("2", None, "ü")]
    lines(own, '{"id": 1, "x": 2}\n', "day=2026-01-31/n=7/a.json")
    for path in folder(own).rglob("*.parquet"):
        path.unlink()
    assert rows(own, as_json("id int, day date, n bigint, x int")) == [("1", "2026-01-31", "7", "2")]
    lines(own, '{"id": 1, "n": 2}\n', "day=2026-01-31/n=7/a.json")
    assert "has n, as its folder's name has" in read(as_json("id int, day date, n bigint"), own).unreadable


HIDDEN = ("_SUCCESS", "sub/_b", ".x/b", "_x/b", "_temporary/0/d=1/b", "d=1/_temporary/0/b", "d=1/.b", "b._COPYING_")
SPARK_FINDS = [
    ("a.parquet", "b.parquet"),
    ("d=1/e=1/a.parquet", "d=__HIVE_DEFAULT_PARTITION__/e=2=3/b.parquet"),
    ("_d=1/a.parquet", "_d=2/b.parquet"),
]
PLAIN = "which is no partition (NAME=VALUE): not every reader of Spark's finds it"
SPARK_DOES_NOT_FIND = [
    (("a.parquet", "sub/b.parquet"), f"sub/b.parquet is in sub, {PLAIN}"),
    (("batch-000003/a.parquet",), f"batch-000003/a.parquet is in batch-000003, {PLAIN}"),
    (("sub/d=1/a.parquet",), f"sub/d=1/a.parquet is in sub, {PLAIN}"),
    (("d=1/sub/a.parquet",), f"d=1/sub/a.parquet is in sub, {PLAIN}"),
    (("d=1/sub/e=1/a.parquet",), f"is in sub, {PLAIN}"),
    (("d=/a.parquet",), f"is in d=, {PLAIN}"),
    (("=1/a.parquet",), f"is in =1, {PLAIN}"),
    (("a.parquet", "d=1/b.parquet"), "has the partition columns d, and a.parquet has no partition column"),
    (("d=1/a.parquet", "d=1/e=2/b.parquet"), "has the partition columns d, e, and d=1/a.parquet has the part"),
    (("d=1/e=1/a.parquet", "e=1/d=1/b.parquet"), "has the partition columns e, d, and d=1/e=1/a.parquet has the part"),
    (("D=1/a.parquet", "d=1/b.parquet"), "has the partition columns d, and D=1/a.parquet has the partition columns D"),
    (("d=1/D=2/a.parquet",), "d=1/D=2/a.parquet has a partition's column twice, and Spark refuses the folder"),
]  # fmt: skip
"""As Spark 4.0.0 does it: `spark.read.parquet` of each."""


@pytest.mark.parametrize("places", SPARK_FINDS, ids=str)
@pytest.mark.parametrize("sink", [PAYMENTS, BY_MANIFEST], ids=["listing", "manifest"])
def test_files_that_spark_finds_in_a_folder_are_read(own: Own, sink: Sink, places: tuple[str, ...]) -> None:
    for place in HIDDEN:
        lines(own, "nothing", place)
    logged(own, "0", *(added(write(own, pa.table({"id": [1]}), place)) for place in places))
    assert len(rows(own, sink)) == len(places)


@pytest.mark.parametrize("case", SPARK_DOES_NOT_FIND, ids=str)
@pytest.mark.parametrize("sink", [PAYMENTS, BY_MANIFEST], ids=["listing", "manifest"])
def test_a_file_that_spark_does_not_find_is_refused_by_name(
    own: Own, sink: Sink, case: tuple[tuple[str, ...], str]
) -> None:
    places, words = case
    logged(own, "0", *(added(write(own, pa.table({"id": [1]}), place)) for place in places))
    found = read(sink, own)
    assert words in found.unreadable and not found.rows and not found.absent
    with pytest.raises(UsageError):
        columns(sink, own)


def test_folders_that_are_read_recursively_give_no_column(own: Own) -> None:
    sink = Sink(kind="files", target="payments", options={"reader": "recursive"})
    places = ("a.parquet", "sub/b.parquet", "d=1/c.parquet", "_d=1/d.parquet", "_h/e.parquet", "sub/.x/f.parquet")
    for number, place in enumerate(places):
        write(own, pa.table({"id": [number]}), place)
    assert rows(own, sink) == [("0",), ("1",), ("2",), ("3",)]


def test_files_with_other_columns_are_told(own: Own) -> None:
    write(own, pa.table({"id": [1]}))
    write(own, pa.table({"id": [1.5]}), "b.parquet")
    assert "b.parquet has the columns id double, and a.parquet has id int64" in read(PAYMENTS, own).unreadable


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_torn_file_is_named_and_keeps_no_other_from_showing_the_columns(own: Own, kept: int) -> None:
    path = write(own, payments([(str(at), "a", "5") for at in range(100)]))
    path.write_bytes(path.read_bytes()[:kept])
    assert columns(PAYMENTS, own) is None
    write(own, payments([("1", "a", "5")]), "b.parquet")
    found = read(PAYMENTS, own)
    assert "a.parquet is torn, or cannot be read exactly" in found.unreadable and not found.absent
    assert [column.name for column in columns(PAYMENTS, own) or ()] == ["id", "account", "amount"]


def test_pages_that_were_changed_are_told_by_their_file(own: Own) -> None:
    path = write(own, payments(good_rows(1000)), write_page_checksum=True, compression="none")
    data = bytearray(path.read_bytes())
    data[200] ^= 255
    path.write_bytes(data)
    assert "a.parquet is torn, or cannot be read exactly" in read(PAYMENTS, own).unreadable


def test_a_type_that_cannot_be_compared_exactly_is_refused_by_name(own: Own) -> None:
    write(own, pa.table({"id": [1], "x": pa.array([[1]], pa.list_(pa.int64()))}))
    assert "the files of payments has a column x of type" in read(PAYMENTS, own).unreadable


def test_what_is_not_there_yet_is_missing(own: Own) -> None:
    for sink in (PAYMENTS, BY_MANIFEST, as_json()):
        assert columns(sink, own) is None and mark(sink, own) == "no such folder"
        assert read(sink, own).absent
    folder(own).mkdir()
    assert "there is none yet" in read(PAYMENTS, own).unreadable
    write(own, payments([("1", "a", "5")]))
    found = read(BY_MANIFEST, own)
    assert found.absent and "no batch of Spark's file sink is committed there" in found.unreadable
    logged(own, ".0.tmp")
    assert "no batch is committed yet" in read(BY_MANIFEST, own).unreadable
    assert opened(PAYMENTS, {}) is None


def test_a_zombie_shows_in_a_listing_and_not_by_the_manifest(own: Own) -> None:
    first, zombie = payments([("1", "a", "5")]), payments([("2", "b", "6")])
    logged(own, "0", added(write(own, first, "1 %.parquet")))
    write(own, zombie, "2.parquet")
    assert rows(own, BY_MANIFEST) == [("1", "a", "5")]
    assert rows(own) == [("1", "a", "5"), ("2", "b", "6")]
    assert read(BY_MANIFEST, own).version == "batch 0 of its manifest, 1 files"


def test_a_link_to_another_folder_is_refused_by_name(own: Own, tmp_path: Path) -> None:
    write(own, payments([("1", "a", "5")]), "1.parquet")
    (tmp_path / "elsewhere").mkdir()
    (own["files"].at.folder / "payments" / "batch=7").symlink_to(tmp_path / "elsewhere")
    assert "batch=7 is a link to another folder" in read(PAYMENTS, own).unreadable


def test_the_files_that_were_read_stay_with_the_reading(own: Own, tmp_path: Path) -> None:
    write(own, payments([("1", "a", "5")]))
    assert keep(tmp_path / "kept", 0, PAYMENTS, own, rows_max=10, wait_ms=1000) == 1
    kept = load(tmp_path / "kept", 0)
    assert kept is not None and kept.version == mark(PAYMENTS, own) and kept.version.startswith("1 files, ")


def test_its_mark_changes_with_any_file_also_one_that_is_hidden(own: Own) -> None:
    seen = [mark(PAYMENTS, own)]
    for text, place in (("x", "a.json"), ("xy", "a.json"), ("x", "_temporary/0/a"), ("x", ".b.json")):
        lines(own, text, place)
        seen.append(mark(PAYMENTS, own))
    (folder(own) / "_temporary/0/a").unlink()
    seen.append(mark(PAYMENTS, own))
    assert len({*seen}) == 6 and busy(PAYMENTS, own) == ""


Steps = list[Mapping[str, str]]
STEPS = st.lists(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["add", "delete"]), max_size=4), min_size=1)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=STEPS, compacted=st.sets(st.integers(0, 12)), gone=st.booleans())
def test_a_manifest_says_the_same_however_it_was_compacted(
    own: Own, batches: Steps, compacted: set[int], gone: bool
) -> None:
    log = folder(own) / "_spark_metadata"
    for left in log.glob("*"):
        left.unlink()
    there: dict[str, None] = {}
    for number, batch in enumerate(batches):
        for name, action in batch.items():
            if action == "add":
                there[name] = None
            else:
                there.pop(name, None)
        entries = [added(folder(own) / name, action) for name, action in batch.items()]
        if number in compacted:
            logged(own, f"{number}.compact", *(added(folder(own) / name) for name in there))
            if gone:
                for earlier in range(number):
                    (log / str(earlier)).unlink(missing_ok=True)
        else:
            logged(own, str(number), *entries)
    number, found = manifest.entries(log)
    assert number == len(batches) - 1
    assert {path.name for path in found} == set(there)


DAMAGED = [
    ("v2", "begins with 'v2', and only v1 is known"),
    ("", "begins with '', and only v1 is known"),
    ('v1\n{"path": "/x"', "line 2 of the manifest payments/_spark_metadata/1 is damaged"),
    ('v1\n{"path": "/x", "size": "7", "action": "add"}', "path or size is of another type"),
    ('v1\n{"path": "/x", "size": 7, "action": "move"}', "action 'move' is not known"),
    ('v1\n{"path": "file:///x", "size": 7, "action": "add"}', "names x, and that cannot be read"),
]


@pytest.mark.parametrize("case", DAMAGED, ids=str)
def test_a_manifest_that_is_damaged_is_told(own: Own, case: tuple[str, str]) -> None:
    text, words = case
    logged(own, "0", added(write(own, payments([("1", "a", "5")]))))
    logged(own, "1").write_text(text)
    found = read(BY_MANIFEST, own)
    assert words in found.unreadable and not found.absent


def test_a_manifest_with_a_gap_and_a_file_of_another_size_are_told(own: Own) -> None:
    path = write(own, payments([("1", "a", "5")]))
    logged(own, "3", added(path))
    assert "batch 0 is not in it, and batch 3 is" in read(BY_MANIFEST, own).unreadable
    (folder(own) / "_spark_metadata" / "3").rename(folder(own) / "_spark_metadata" / "0")
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])
    words = f"says that a.parquet has {size} bytes; it has {size - 1}"
    assert words in read(BY_MANIFEST, own).unreadable


MISTAKES = [
    ("{files: payments, format: json}", "columns is missing: JSON does not say of which type a column is"),
    ("{files: payments, columns: id bigint}", "columns means nothing for Parquet"),
    ("{files: payments, format: json, columns: k string of key}", "k: a line of a file has fields alone"),
    ("{files: payments, reader: spark}", "reader must be one of listing, recursive, manifest"),
    ("{files: payments, format: csv}", "format must be one of parquet, json"),
    ("{files: payments, view: deduplicated}", "view means nothing for a table"),
    ("{files: a/b}", "files must be a name of small letters"),
]


@pytest.mark.parametrize("case", MISTAKES, ids=str)
def test_mistakes_of_a_scenario_are_told(tmp_path: Path, case: tuple[str, str]) -> None:
    place, words = case
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "program.py").touch()
    said = f"{place[:-1]}, expected: select id from ledger, key: [id]}}"
    (tmp_path / "one.yaml").write_text(f"name: x\npipeline: program.py\nsink: {said}\n")
    with pytest.raises(ScenarioError, match=words):
        scenarios.load(tmp_path / "one.yaml")


def test_rows_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "program.py").touch()
    (tmp_path / "one.yaml").write_text(
        "name: x\npipeline: program.py\nsink: {files: payments, expected: select id from ledger, key: [id]}\n"
        "schedule: [{when: {rows: 5, batch: 2}, do: crash mid-sink}]\n"
    )
    with pytest.raises(ScenarioError, match=r"rows cannot be counted: no sink counts its rows"):
        scenarios.load(tmp_path / "one.yaml")


def test_what_is_no_file_of_the_folder_is_refused(own: Own, tmp_path: Path) -> None:
    elsewhere = tmp_path / "b.parquet"
    pq.write_table(payments([("1", "a", "5")]), elsewhere)
    folder(own).mkdir()
    logged(own, "0", added(elsewhere))
    with pytest.raises(UsageError, match=r"payments names the file .*b.parquet, which lies elsewhere"):
        manifest.committed(folder(own))
