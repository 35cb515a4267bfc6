"""The sink `kafka`: a topic read back exactly, or refused by place; repeated identities; open transactions."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka import KafkaProducer

from harness import load as scenarios
from harness.checkers.cells import Row
from harness.checkers.order import OrderCase, misordered
from harness.checkers.schema_check import folded, folding_note, schema_mismatch
from harness.components.kafka.process import Kafka
from harness.components.kafka.run_topic import Topic
from harness.components.kafka.sink.repeats import Repeats
from harness.components.kafka.sink.rows import columns_of, row_of
from harness.errors import StackError, UsageError
from harness.ledger import Ledger, Source
from harness.machine import jars, java
from harness.scenario import Kind, Order, Sink
from harness.session.session import Session
from harness.sinks.base import HoldsWriter, MarksTime, MayFold, ShowsWriters
from harness.sinks.json_columns import DEFAULT, parsed
from harness.sinks.reading import busy, columns, keep, mark, opened, read, tried
from harness.sinks.table import load
from harness.stacks.needed_parts import parts
from harness.wait import until
from harness.workloads import make
from tests import shipped
from tests.laws import FAULTS
from tests.limits import examples
from tests.planted import is_found, plant
from tests.provided import Own, parts_of, running
from tests.test_sinks import IN_KAFKA, ROOT

WITHIN_S = 60.0
PAYMENTS = "id bigint, account string, amount decimal(38, 9)"


@dataclass
class Record:
    """As the client gives one."""

    value: bytes | None = b"{}"
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    partition: int = 2
    offset: int = 17
    timestamp: int = 1_769_853_600_123


def cell(columns: str, record: Record) -> str | None:
    (found,) = row_of(record, parsed(columns), topic="t")
    return found


EXACT = [
    ("x tinyint", "-128", "-128"),
    ("x int", "null", None),
    ("x bigint", "9007199254740993", "9007199254740993"),
    ("x bigint", "-0", "0"),
    ("x decimal(38,19)", "9007199254740993.0000000000000000001", "9007199254740993.0000000000000000001"),
    ("x decimal(12,2)", "1.50", "1.5"),
    ("x decimal(12,2)", "15e-1", "1.5"),
    ("x decimal(12,2)", "0.00", "0"),
    ("x decimal(3)", "999", "999"),
    ("x double", "0.1", "0.1"),
    ("x double", "-0.0", "-0.0"),
    ("x double", "5e-324", "5e-324"),
    ("x double", "1", "1.0"),
    ("x double", '"NaN"', "nan"),
    ("x double", "NaN", "nan"),
    ("x double", '"-Infinity"', "-inf"),
    ("x double", "1.0E23", "1e+23"),
    ("x double", "0.00", "0.0"),
    ("x float", "0.1", "0.10000000149011612"),
    ("x float", "1.6777216E7", "16777216.0"),
    ("x float", "1.0E20", "1.0000000200408773e+20"),
    ("x float", "3.4028235E38", "3.4028234663852886e+38"),
    ("x boolean", "true", "true"),
    ("x string", '"null"', "null"),
    ("x string", '""', ""),
    ("x string", '"\\u00dc\\n\\ud83d\\ude00 "', "Ü\n😀 "),
    ("x binary", '"AP8="', "00ff"),
    ("x date", '"2026-01-31"', "2026-01-31"),
    ("x timestamp_ntz", '"2026-01-31T10:00:00.123456"', "2026-01-31T10:00:00.123456"),
    ("x timestamp_ntz", '"2026-01-31 10:00:00"', "2026-01-31T10:00:00.000000"),
    ("x timestamp", '"2026-01-31T12:00:00.5+02:00"', "2026-01-31T10:00:00.500000Z"),
    ("x int of field y", '1, "y": 2', "2"),
    ("y int", "1", None),
]


@pytest.mark.parametrize(("column", "written", "there"), EXACT)
def test_every_type_of_a_field_arrives_exactly(column: str, written: str, there: str | None) -> None:
    assert cell(column, Record(f'{{"x": {written}}}'.encode())) == there


INEXACT = [
    ("x bigint", "1.0", "1.0 is no bigint"),
    ("x bigint", '"1"', '"1" is no bigint'),
    ("x bigint", "9223372036854775808", "9223372036854775808 is no bigint: it does not fit"),
    ("x tinyint", "true", "true is no tinyint"),
    ("x decimal(12,2)", "1.505", "1.505 is no decimal(12,2): it has more decimals"),
    ("x decimal(3,2)", "10.00", "10.00 is no decimal(3,2): it does not fit"),
    ("x decimal(12,2)", "1e999999", "1e999999 is no decimal(12,2): it does not fit"),
    ("x decimal(12,2)", "NaN", "NaN is no decimal(12,2)"),
    ("x double", "1e400", "1e400 is no double: it does not fit"),
    ("x double", "1e-400", "1e-400 is no double: it does not fit"),
    ("x double", "9007199254740993", "9007199254740993 is no double: it has more digits"),
    ("x double", "1e9999999999999999999", "1e9999999999999999999 is no double: it does not fit"),
    ("x decimal(12,2)", "1e-9999999999999999999", "1e-9999999999999999999 is no decimal(12,2): it does not fit"),
    ("x float", "16777217", "16777217 is no float: it has more digits"),
    ("x float", "1e39", "1e39 is no float: it does not fit"),
    ("x timestamp", '"9999-12-31T23:59:59-10:00"', '"9999-12-31T23:59:59-10:00" is no timestamp'),
    ("x double", '"0.1"', '"0.1" is no double'),
    ("x boolean", '"true"', '"true" is no boolean'),
    ("x string", "1", "1 is no string"),
    ("x string", '{"a": 1}', '{"a": "1"} is no string'),
    ("x string", '"\\ud800"', '"\\ud800" is no string: half of a surrogate pair is no character'),
    ("x binary", '"A"', '"A" is no binary'),
    ("x date", '"2026-02-30"', '"2026-02-30" is no date'),
    ("x date", '"2026-W05-6"', '"2026-W05-6" is no date'),
    ("x date", '"20260131"', '"20260131" is no date'),
    ("x timestamp_ntz", '"2026-02-30T10:00:00"', '"2026-02-30T10:00:00" is no timestamp_ntz'),
    ("x timestamp_ntz", '"2026-01-31T10:00:00Z"', '"2026-01-31T10:00:00Z" is no timestamp_ntz'),
    ("x timestamp", '"2026-01-31T10:00:00"', '"2026-01-31T10:00:00" is no timestamp'),
]


@pytest.mark.parametrize(("column", "written", "words"), INEXACT)
def test_what_a_column_does_not_keep_is_refused_by_its_place(column: str, written: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        cell(column, Record(f'{{"x": {written}}}'.encode()))
    where = "the record at partition 2, offset 17 of t cannot be read exactly: column x: "
    assert str(refused.value) == f"{where}{words}. Mend the sink's `columns`, or the program"


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (Record(None), "its value is null, and no object"),
        (Record(b"\xff"), "its value is no UTF-8"),
        (Record(b"[1]"), "its value is JSON, and no object"),
        (Record(b'{"x": 1, "x": 1}'), "its value has the field 'x' twice"),
        (Record(b'{"x": 1'), "its value is no JSON"),
        (Record(b"[" * 100_000), "its value is JSON of too many levels"),
    ],
)
def test_a_value_that_is_no_object_is_refused(record: Record, words: str) -> None:
    with pytest.raises(UsageError, match=r"partition 2, offset 17 of t cannot be read exactly: .*") as refused:
        cell("x int", record)
    assert words in str(refused.value)


def test_what_a_record_has_beside_its_fields() -> None:
    record = Record(
        "é".encode(), b"\x00\xff", [("origin", b"0:7"), ("seq", b"12"), ("none", None), ("two", b""), ("two", b"")]
    )
    wanted = "key binary of key, value string of value, origin string of header origin, seq bigint of header seq"
    rest = "none string of header none, other string of header other, p int of partition, o bigint of offset"
    row = row_of(record, parsed(f"{wanted}, {rest}, at timestamp of timestamp"), topic="t")
    assert row == ("00ff", "é", "0:7", "12", None, None, "2", "17", "2026-01-31T10:00:00.123000Z")
    assert (
        row_of(Record(None, None, timestamp=-1), parsed(f"{DEFAULT}, at timestamp of timestamp"), topic="t")
        == (None,) * 3
    )
    with pytest.raises(UsageError, match="column two: the record has 2 headers two"):
        cell("two string of header two", record)
    with pytest.raises(UsageError, match="column key: is no UTF-8"):
        cell("key string of key", record)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is no column"),
        ("id", "'id' is no column"),
        ("id uuid", "id has the unknown type uuid"),
        ("id bigint(3)", "id: bigint takes no length"),
        ("id decimal(١٢,2)", "'id decimal(١٢,2)' is no column"),
        ("id decimal(39,2)", "id: a decimal has 1 to 38 digits"),
        ("id decimal(2,3)", "id: a decimal has 1 to 38 digits"),
        ("id int, id int", "id is there twice"),
        (
            "id double of key",
            "id: a key is read as string, binary, decimal, tinyint, smallint, int, bigint, not as double",
        ),
        ("id string of partition", "id: the partition of a record is int or bigint"),
        ("id string of header", "id: of header NAME"),
        ("id string of key k", "id: of header NAME"),
        ("id string of topic", "id: of what is 'topic'"),
    ],
)
def test_columns_that_no_record_can_give_are_said(text: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        parsed(text)
    assert words in str(refused.value)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
DECIMALS = st.decimals(-(10**29) + 1, 10**29 - 1, places=9)


@given(st.integers(-(2**63), 2**63 - 1), st.none() | TEXTS, DECIMALS, st.binary(), st.floats())
def test_any_object_arrives_as_it_is(number: int, text: str | None, amount: Decimal, data: bytes, real: float) -> None:
    value = {"i": number, "t": text, "b": base64.b64encode(data).decode(), "d": real}
    written = json.dumps(value)[:-1] + f', "a": {amount}}}'
    wanted = parsed("i bigint, t string, a decimal(38,9), b binary, d double")
    got = row_of(Record(written.encode()), wanted, topic="t")
    assert got[:2] == (str(number), text) and got[3:] == (data.hex(), repr(real))
    assert got[2] is not None and Decimal(got[2]) == amount


IDENTITIES = st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from(["x", "y"]))


@given(st.lists(st.sampled_from([("a", "x"), ("b", "y"), (None, "x"), (None, "y")]), max_size=12))
def test_the_first_of_each_identity_stays(rows: list[Row]) -> None:
    with closing(Repeats(parsed("origin string of header origin, v string"), ("origin",))) as repeats:
        kept = [row for row in rows if repeats.first(row, partition=0)]
    named = [row for row in rows if row[0] is not None]
    first = [row for at, row in enumerate(named) if row[0] not in [before[0] for before in named[:at]]]
    assert [row for row in kept if row[0] is not None] == first
    assert [row for row in kept if row[0] is None] == [row for row in rows if row[0] is None]


def in_memory(records: list[tuple[Row, int]]) -> Iterator[str]:
    """What becomes of each, by a dictionary of all that came before."""
    first: dict[str, str | None] = {}
    for (origin, content), _ in records:
        if origin is None or origin not in first:
            yield "kept"
            if origin is not None:
                first[origin] = content
        else:
            yield "dropped" if first[origin] == content else "refused"


@given(st.lists(st.tuples(IDENTITIES, st.integers(0, 2)), max_size=12))
def test_what_was_seen_is_found_again_as_in_memory(records: list[tuple[Row, int]]) -> None:
    found = []
    with closing(Repeats(parsed("origin string of header origin, v string"), ("origin",))) as repeats:
        for row, partition in records:
            try:
                found.append("kept" if repeats.first(row, partition=partition) else "dropped")
            except UsageError:
                found.append("refused")
    assert found == [*in_memory(records)]


def test_whose_first_nobody_can_tell_is_refused() -> None:
    wanted = parsed("origin string of header origin, v string, at bigint of offset")
    with closing(Repeats(wanted, ("origin",))) as repeats:
        assert repeats.first(("0:1", "x", "7"), partition=0)
        assert not repeats.first(("0:1", "x", "9"), partition=1), "the same record in another place"
        with pytest.raises(UsageError, match="partitions 0 and 1 have two different records with origin=0:1"):
            repeats.first(("0:1", "y", "9"), partition=1)
        with pytest.raises(UsageError, match="partition 0 has two different records with origin=0:1"):
            repeats.first(("0:1", "y", "9"), partition=0)
    with closing(Repeats(parsed("v string"), ())) as every:
        assert every.first(("x",), partition=0) and every.first(("x",), partition=0)


SEEN = """
from contextlib import closing
from pathlib import Path
from harness.components.kafka.sink.repeats import Repeats
from harness.sinks.json_columns import parsed

def now_kb():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

with closing(Repeats(parsed("origin string"), ("origin",))) as repeats:
    before = now_kb()
    assert all(repeats.first((str(at),), partition=0) for at in range(120_000))
    print(now_kb() - before)
"""


@pytest.mark.subprocess
def test_what_was_seen_is_kept_on_disk() -> None:
    grown_kb = int(subprocess.run([sys.executable, "-c", SEEN], capture_output=True, check=True, timeout=300).stdout)
    assert grown_kb < 16_000, "a dictionary of 120,000 records takes 30 MB"


def test_a_full_disk_is_said() -> None:
    with closing(Repeats(parsed("origin string"), ("origin",))) as repeats:
        repeats._seen.execute("pragma max_page_count = 10")
        with pytest.raises(StackError, match=r"saw database or disk is full\. Is the disk of TMPDIR full"):
            assert all(repeats.first((str(at),), partition=0) for at in range(10_000))


def test_a_topic_is_a_part_of_its_own_with_its_partitions() -> None:
    found = parts(scenarios.load(ROOT / "scenarios" / "sinks" / "kafka_read_once_mid_batch.yaml"))
    assert found == {"kafka": {"partitions": 3}, "kafka.checked": {"partitions": 3}}


@pytest.mark.parametrize("path", IN_KAFKA, ids=lambda path: path.stem)
def test_the_sinks_of_a_scenario_that_we_ship_are_as_fine_as_its_expected_rows(path: Path) -> None:
    scenario = shipped.scenario(path)
    workload = make(scenario.input, seed=1, root=ROOT)
    names = tuple((column.name, column.type, column.expression) for column in workload.columns)
    with Ledger(Source(parquet=None, columns=names), where=path.name) as ledger:
        for each in scenario.sinks:
            there = columns_of(parsed(str(each.options["columns"])))
            assert each.expected is not None
            assert schema_mismatch(each, ledger.table(each.expected).described, there) == []


# From here on with a broker.


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    logs = tmp_path_factory.mktemp("logs")
    with Session() as session, running(Kafka(session, java.find(), jars.resolve(), logs=logs)) as made:
        yield made


@pytest.fixture
def own(broker: Kafka, request: pytest.FixtureRequest) -> Iterator[Own]:
    with parts_of(broker, request, {"out": {"partitions": 3}}) as made:
        yield made


def topic(own: Own) -> Topic:
    found: Topic = own["kafka.out"].at
    return found


def put(own: Own, rows: Sequence[Row], *, at: int | None = None) -> None:
    """Send these rows as JSON, spread over the partitions, or into one."""
    producer = KafkaProducer(bootstrap_servers=topic(own).bootstrap, linger_ms=5)
    for place, (id_, account, amount) in enumerate(rows):
        fields = {"id": id_, "account": json.dumps(account), "amount": amount}
        body = ", ".join(f'"{name}": {text}' for name, text in fields.items() if text is not None)
        partition = place % 3 if at is None else at
        headers = [("origin", f"{id_}:{place}".encode())]
        producer.send(topic(own).topic, f"{{{body}}}".encode(), key=b"k", headers=headers, partition=partition)
    producer.close()


def sink(columns: str = PAYMENTS, **changes: Any) -> Sink:
    options = {"columns": columns} | ({"drop_duplicates": changes.pop("drop")} if "drop" in changes else {})
    return Sink(kind="kafka", target="out", options=options, **changes)


@pytest.mark.stack
@pytest.mark.parametrize("fault", FAULTS)
def test_all_fourteen_planted_faults_are_found(own: Own, fault: str) -> None:
    rows, found, must = plant(fault)
    put(own, found)
    is_found(rows, read(sink(), own), must)


@pytest.mark.stack
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(texts=st.lists(st.none() | TEXTS, min_size=1))
def test_any_text_arrives_as_it_is_and_in_its_place(own: Own, texts: list[str | None]) -> None:
    before = len(read(sink(), own).rows)
    put(own, [(str(i), text, "1") for i, text in enumerate(texts)], at=1)
    rows = read(sink("id bigint, account string, at bigint of offset"), own).rows
    assert [row[:2] for row in rows[before:]] == [(str(i), text) for i, text in enumerate(texts)]
    assert [row[2] for row in rows] == [str(at) for at in range(len(rows))]


@pytest.mark.stack
def test_order_within_a_partition_is_judged(own: Own) -> None:
    put(own, [("1", "a", "1"), ("3", "a", "1"), ("2", "a", "1")], at=0)
    found = read(sink("id bigint, account string, at bigint of offset"), own)
    order = Order(by="at", follows="id", per=("account",))
    names, families = zip(*((column.name, column.family) for column in found.columns), strict=True)
    case = OrderCase(sink="s", columns=names, families=families, order=order, found=found.rows)
    (late,) = misordered(case)
    assert (late.kind, late.copies) == (Kind.MISORDERED, 1)


@pytest.mark.stack
def test_an_empty_topic_has_its_columns_and_no_rows(own: Own) -> None:
    found = read(sink(), own)
    assert (found.rows, found.unreadable, found.unique) == ([], "", False)
    assert [(each.name, each.type) for each in found.columns] == [
        ("id", "bigint"), ("account", "string"), ("amount", "decimal(38,9)")
    ]  # fmt: skip
    assert columns(sink(), own) == found.columns
    assert not isinstance(opened(sink(), own), HoldsWriter)


@pytest.mark.stack
def test_more_rows_than_one_part_and_what_is_kept_of_them(own: Own, tmp_path: Path) -> None:
    put(own, [(str(i), "a", "1") for i in range(45_001)])
    rows = read(sink(), own).rows
    assert (len(rows), len(set(rows))) == (45_001, 45_001)
    assert keep(tmp_path, 0, sink(key=("id",)), own, rows_max=1000, wait_ms=2000) == 45_001
    kept = load(tmp_path, 0)
    assert kept is not None and kept.form == "fingerprints"
    assert sum(int(part.partition("/")[2]) for part in mark(sink(), own).split()) == 45_001


@pytest.mark.stack
def test_what_cannot_be_read_is_said_by_its_place(own: Own) -> None:
    put(own, [("1", "a", "1"), ("2", "b", "1"), ("3", "c", "0.5")], at=2)
    found = read(sink("id bigint, amount int"), own)
    assert (found.rows, found.absent) == ([], False)
    assert "partition 2, offset 2 of" in found.unreadable and "column amount: 0.5 is no int" in found.unreadable
    assert busy(sink("id bigint, amount int"), own) == "" and mark(sink("id bigint, amount int"), own)


@pytest.mark.stack
def test_repeated_identities_are_dropped_and_never_silently(own: Own) -> None:
    put(own, [("1", "a", "1"), ("2", "b", "2")])
    put(own, [("1", "a", "1"), ("2", "b", "2"), ("3", "d", "3")])
    wanted = "id bigint, account string, origin string of header origin"
    plain, once = sink(wanted), sink(wanted, drop="origin")
    assert len(read(plain, own).rows) == 5
    table = read(once, own)
    assert [row[0] for row in sorted(table.rows)] == ["1", "2", "3"]
    assert ("2", "b", "2:1") in table.rows, "the first one stays"
    assert table.dropped is not None and sorted(table.dropped) == [("1", "a", "1:0"), ("2", "b", "2:1")]
    assert read(plain, own).dropped is None, "a reader that keeps all drops none"
    there = opened(once, own)
    assert isinstance(there, MayFold) and not isinstance(there, MarksTime)
    folds = tried(once, table, own, after={})
    assert (folds.folds, folds.folding) == (True, "a record that repeats the origin of one before it is dropped")
    assert "folds equal rows" in folded(once, folds) and folding_note(sink(wanted, drop="origin", folds=True), folds)
    assert tried(plain, read(plain, own), own, after={}).folds is None
    put(own, [("1", "a", "1"), ("2", "c", "2")])
    assert "two different records with origin=2:1" in read(once, own).unreadable


@pytest.mark.stack
def test_a_transaction_is_seen_while_it_is_open_and_read_once_it_is_committed(own: Own) -> None:
    producer = KafkaProducer(bootstrap_servers=topic(own).bootstrap, transactional_id=topic(own).topic)
    producer.init_transactions()
    there = opened(sink(), own)
    assert isinstance(there, ShowsWriters) and there.server == "kafka.out"
    for ends in (producer.abort_transaction, producer.commit_transaction):
        before = mark(sink(), own)
        producer.begin_transaction()
        producer.send(topic(own).topic, b'{"id": 1}', partition=1).get(WITHIN_S)
        assert read(sink(), own).rows == []
        (mine, ours) = there.writing(wait_ms=1000)
        assert mine == ours and len(mine) == 1
        assert "in partition 1 from offset" in mine[0].statement and busy(sink(), own) == mine[0].statement
        assert mark(sink(), own) != before
        ends()
        until("the end of the transaction", lambda: not busy(sink(), own), within_s=WITHIN_S)
    producer.close()
    assert there.writing(wait_ms=1000) == ([], [])
    assert read(sink(), own).rows == [("1", None, None)]


@pytest.mark.stack
def test_a_topic_that_is_gone_is_no_empty_one(own: Own, broker: Kafka) -> None:
    broker.topics.delete(topic(own).topic, sure=True)
    with pytest.raises(StackError, match=r"asked Kafka"):
        read(sink(), own)


@pytest.mark.stack
def test_a_broker_that_was_killed_has_its_records_and_its_leaders(own: Own, broker: Kafka) -> None:
    put(own, [(str(i), "a", "1") for i in range(100)])
    before = mark(sink(), own)
    broker.stop()
    broker.check()
    broker.start()
    assert len(read(sink(), own).rows) == 100 and mark(sink(), own) == before


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("ID BIGINT, At Timestamp_NTZ", [("ID", "bigint", "field"), ("At", "timestamp_ntz", "field")]),
        ("a long, b integer", [("a", "bigint", "field"), ("b", "int", "field")]),
        ("a short, b byte", [("a", "smallint", "field"), ("b", "tinyint", "field")]),
        ("a real, b numeric(12,2)", [("a", "float", "field"), ("b", "decimal(12,2)", "field")]),
        ("a dec, b timestamp_ltz", [("a", "decimal(10,0)", "field"), ("b", "timestamp", "field")]),
        ("id: bigint, k:string of key", [("id", "bigint", "field"), ("k", "string", "key")]),
        ("id bigint not null, k string NOT NULL of key", [("id", "bigint", "field"), ("k", "string", "key")]),
    ],
)
def test_columns_are_said_in_the_words_of_spark(text: str, columns: list[tuple[str, str, str]]) -> None:
    assert [(each.name, each.full, each.of) for each in parsed(text)] == columns


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id strin", "id has the unknown type strin; did you mean 'string'?"),
        ("id int8", "id has the unknown type int8; did you mean 'int'?"),
        ("id bigint primary key", "id: what is 'primary key' after its type? There are `not null` and `of`"),
        ("id", "'id' is no column: write NAME TYPE"),
    ],
)
def test_what_is_wrong_with_a_column_is_said(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parsed(text)
