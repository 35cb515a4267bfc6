"""Producer and read-back: what is meant is in the ledger first, every answer follows, and doubt is called unknown."""

from __future__ import annotations

import ast
import random
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors

from harness.components.kafka import sender as sending
from harness.components.kafka.process import Kafka
from harness.components.kafka.readback import read_back
from harness.components.kafka.run_topic import LastTopic, Places, Topic
from harness.components.kafka.sender import HEADER, TopicSender
from harness.components.kafka.source import OpenTopic
from harness.components.kafka.topics import whole
from harness.errors import HarnessError, StackError, WaitError
from harness.machine import jars, java
from harness.run_folder import ledger
from harness.run_folder.ledger import Attempts, ProducerReport, State, producer_report, read, read_source
from harness.scenario import Input
from harness.session.session import Session
from harness.sources.producer import PORTION, Producer
from harness.workloads import Record, Workload, make
from harness.workloads.base import Column
from tests.conftest import UNCLOSED
from tests.limits import examples
from tests.socks import Socks

PARTITIONS = 3
ANSWER_S = 120.0
CLIENTS = {"KafkaProducer", "_Kafka", "KafkaConsumer", "KafkaAdminClient"}
pytestmark = [
    pytest.mark.usefixtures("all_closed"),
    *(pytest.mark.filterwarnings(each) for each in UNCLOSED),
]


class Listed:
    """A workload of just these records."""

    columns: tuple[Column, ...] = ()

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self.count = len(records)

    def records(self) -> Iterator[Record]:
        return iter(self._records)


class Pending:
    def __init__(self, outcome: BaseException | SimpleNamespace) -> None:
        self._outcome = outcome

    def get(self, timeout: float | None = None) -> Any:
        assert timeout is not None
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome


class FakeClient:
    """Answers as `script` says: an error to raise from `send`, or what the pending answer holds."""

    def __init__(self, log: Path, script: list[tuple[str, Any]]) -> None:
        self.log, self.script = log, script
        self.closed = 0
        self.sent: list[tuple[int, dict[str, Any]]] = []
        self.meant_first: list[bool] = []

    def send(self, topic: str, value: bytes, **more: Any) -> Pending:
        seq = int.from_bytes(dict(more["headers"])[HEADER], "big")
        self.meant_first.append(seq in read(self.log).table["seq"].to_pylist())
        self.sent.append((seq, {**more, "topic": topic}))
        how, what = self.script[len(self.sent) - 1]
        if how == "raise":
            raise what
        return Pending(what)

    def close(self, timeout: float | None = None) -> None:
        assert timeout is not None
        self.closed += 1


def placed(offset: int) -> SimpleNamespace:
    return SimpleNamespace(topic="t", partition=1, offset=offset)


OUTCOMES: list[tuple[str, Any, State]] = [
    ("answer", placed(7), State.ACKNOWLEDGED),
    ("answer", placed(-1), State.UNKNOWN),
    ("answer", kafka_errors.MessageSizeTooLargeError("x"), State.FAILED),
    ("answer", kafka_errors.RecordListTooLargeError("x"), State.FAILED),
    ("answer", kafka_errors.KafkaTimeoutError("x"), State.UNKNOWN),
    ("answer", kafka_errors.KafkaConnectionError("x"), State.UNKNOWN),
    ("answer", kafka_errors.RequestTimedOutError("x"), State.UNKNOWN),
    ("answer", kafka_errors.OutOfOrderSequenceNumberError("x"), State.UNKNOWN),
    ("answer", kafka_errors.TopicAuthorizationFailedError("x"), State.UNKNOWN),
    ("answer", kafka_errors.UnknownError("x"), State.UNKNOWN),
    ("raise", kafka_errors.MessageSizeTooLargeError("x"), State.FAILED),
    ("raise", kafka_errors.KafkaTimeoutError("its buffer is full"), State.FAILED),
    ("raise", ValueError("no such partition"), State.FAILED),
]


@given(outcomes=st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=8))
@settings(max_examples=examples(40))
def test_every_answer_has_its_one_reading(tmp_path_factory: pytest.TempPathFactory, outcomes: list[Any]) -> None:
    log = tmp_path_factory.mktemp("producer") / "attempts.log"
    client = FakeClient(log, [(how, what) for how, what, _ in outcomes])
    workload = Listed([Record(seq, b"k", b"v") for seq in range(len(outcomes))])
    producer = Producer(workload, Attempts(log), TopicSender("", Places(("t",), PARTITIONS), connected=lambda: client))
    assert producer.total == len(outcomes)
    assert producer.send(1) == 1
    assert producer.done == (len(outcomes) == 1)
    assert producer.send(99) == len(outcomes) - 1
    assert producer.done
    assert producer.send(1) == 0
    seen = read(log)
    states = seen.table["state"].to_pylist()
    assert states == [state for _, _, state in outcomes]
    counts = Counter(states)
    assert producer.counts == {state: counts[state] for state in State}
    assert producer.sent == len(outcomes)
    assert all(client.meant_first)
    assert all(row["error"] for row in seen.table.to_pylist() if row["state"] != State.ACKNOWLEDGED)


def test_a_client_in_doubt_is_dropped_and_what_then_cannot_be_sent_has_failed(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    first = FakeClient(log, [("answer", placed(0)), ("answer", kafka_errors.KafkaTimeoutError("x"))])
    third = FakeClient(log, [("answer", placed(1))])
    outcomes: Iterator[FakeClient | None] = iter([first, None, third])

    def connected() -> FakeClient:
        client = next(outcomes)
        if client is None:
            raise StackError("nobody there")
        return client

    records = [Record(seq, None, b"") for seq in range(4)]
    producer = Producer(Listed(records), Attempts(log), TopicSender("", Places(("t",), 1), connected=connected))
    closed = []
    for _ in records:
        producer.send(1)
        closed.append((first.closed, third.closed))
    assert closed == [(0, 0), (1, 0), (1, 0), (1, 0)]
    assert read(log).table["state"].to_pylist() == ["acknowledged", "unknown", "failed", "acknowledged"]
    assert read(log).table["error"][2].as_py() == "not sent: nobody there"
    producer.close()
    producer.close()
    assert (first.closed, third.closed) == (1, 1)


def test_a_closed_producer_takes_no_more(tmp_path: Path) -> None:
    client = FakeClient(tmp_path / "a.log", [("answer", placed(0))])
    records = Listed([Record(seq, None, b"") for seq in range(2)])
    producer = Producer(
        records, Attempts(tmp_path / "a.log"), TopicSender("", Places(("t",), 1), connected=lambda: client)
    )
    assert producer.send(1) == 1
    producer.close()
    assert producer.send(1) == 0
    assert not producer.done
    assert read(tmp_path / "a.log").table.num_rows == 1


def test_records_without_a_place_get_one_that_a_seed_fixes(tmp_path: Path) -> None:
    client = FakeClient(tmp_path / "a.log", [("answer", placed(0))] * 4)
    records = [Record(0, None, b""), Record(1, None, b""), Record(2, b"acct-0007", b""), Record(3, b"k", b"", 2)]
    Producer(
        Listed(records),
        Attempts(tmp_path / "a.log"),
        TopicSender("", Places(("t",), PARTITIONS), connected=lambda: client),
    ).send(9)
    # 1 for acct-0007 is what Kafka's own clients say: murmur2 of the key, without its sign, modulo 3.
    assert [more["partition"] for _, more in client.sent] == [0, 1, sending._hashed(b"acct-0007") % 3, 2]
    assert read(tmp_path / "a.log").table["wanted"].to_pylist() == [more["partition"] for _, more in client.sent]


def test_a_client_that_takes_nothing_is_not_asked_for_ever(tmp_path: Path) -> None:
    client = FakeClient(tmp_path / "a.log", [("raise", kafka_errors.KafkaTimeoutError("its buffer is full"))] * 3)
    workload = Listed([Record(seq, None, b"") for seq in range(3)])
    attempts = Attempts(tmp_path / "a.log")
    producer = Producer(
        workload, attempts, TopicSender("", Places(("t",), 1), answer_within_s=0.0, connected=lambda: client)
    )
    assert producer.send(3) == 3
    assert client.sent == []
    assert producer.counts[State.FAILED] == 3
    assert "not sent" in read(tmp_path / "a.log").table["error"][2].as_py()


class Broker:
    """Makes topics, once it was asked in vain so many times."""

    def __init__(self, away: float) -> None:
        self.away = away
        self.asked = 0

    def create(self) -> None:
        self.asked += 1
        if self.asked <= self.away:
            raise StackError("cannot create topic t.2: no broker")


def test_the_last_topic_is_made_by_a_broker_that_comes_back(tmp_path: Path) -> None:
    broker, client = Broker(away=1), FakeClient(tmp_path / "a.log", [("answer", placed(0))] * 4)
    last = LastTopic(at=2, create=broker.create)
    sender = TopicSender("", Places(("t", "t.2"), 1), last=last, answer_within_s=ANSWER_S, connected=lambda: client)
    records = Listed([Record(seq, None, b"") for seq in range(4)])
    producer = Producer(records, Attempts(tmp_path / "a.log"), sender)
    producer.send(2)
    assert (broker.asked, last.made) == (0, False)
    producer.send(2)
    assert (broker.asked, last.made) == (2, True)
    assert [more["topic"] for _, more in client.sent] == ["t", "t", "t", "t.2"]


def test_records_for_a_topic_that_nobody_makes_have_failed(tmp_path: Path) -> None:
    client = FakeClient(tmp_path / "a.log", [])
    last = LastTopic(at=2, create=Broker(away=float("inf")).create)
    sender = TopicSender("", Places(("t", "t.2"), 1), last=last, answer_within_s=0.0, connected=lambda: client)
    answers = sender.send([Record(2, None, b"", partition=0), Record(3, None, b"", partition=1)])
    assert [answer.state for answer in answers] == [State.FAILED, State.FAILED]
    assert "no broker" in str(answers[0].error)
    assert client.sent == []
    assert not last.made


# Against a real broker.


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    found = java.find()
    with Session() as session:
        made = Kafka(session, found, jars.resolve(found), logs=tmp_path_factory.mktemp("logs"))
        try:
            made.start()
            yield made
        finally:
            made.close()


@pytest.fixture
def topic(broker: Kafka, request: pytest.FixtureRequest) -> str:
    name = f"p-{abs(hash(request.node.name))}"
    broker.topics.create(name, partitions=PARTITIONS)
    return name


@pytest.fixture
def socks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Socks]:
    """A way to the broker that can be cut; every producer of the test takes it."""
    made = Socks()
    monkeypatch.setitem(KafkaProducer.DEFAULT_CONFIG, "proxy_url", made.url)
    yield made
    made.close()


def judged(broker: Kafka, topic: str, folder: Path) -> ProducerReport:
    ends = read_back(broker.bootstrap, Places((topic,), PARTITIONS), folder / "source.parquet", within_s=ANSWER_S)
    assert ends == broker.topics.end_offsets(topic)
    return producer_report(read(folder / "attempts.log"), read_source(folder / "source.parquet"))


def kept(report: ProducerReport, folder: Path) -> bool:
    """Whether producer and broker kept every promise: what was said to have failed is not there either."""
    failed = {row["seq"] for row in read(folder / "attempts.log").table.to_pylist() if row["state"] == State.FAILED}
    refuted = failed & {*read_source(folder / "source.parquet")["seq"].to_pylist()}
    return not (report.lost or report.changed or report.duplicated or refuted)


def transactions(count: int) -> Workload:
    return make(Input(records=count), seed=1, root=Path())


@pytest.mark.stack
def test_what_is_sent_is_read_back(broker: Kafka, topic: str, tmp_path: Path) -> None:
    workload = transactions(PORTION + 500)
    producer = Producer(
        workload, Attempts(tmp_path / "attempts.log"), TopicSender(broker.bootstrap, Places((topic,), PARTITIONS))
    )
    assert [producer.send(300), producer.send(10**6), producer.send(1)] == [300, PORTION + 200, 0]
    producer.close()
    producer.close()
    assert producer.done
    assert producer.acknowledged == producer.sent == workload.count
    report = judged(broker, topic, tmp_path)
    assert kept(report, tmp_path)
    assert (report.acknowledged, report.source, report.foreign) == (workload.count, workload.count, 0)
    rows = read_source(tmp_path / "source.parquet").sort_by("seq").to_pylist()
    assert [(row["seq"], row["key"], row["value"]) for row in rows] == [r[:3] for r in workload.records()]
    assert len({row["key"]: row["partition"] for row in rows}) == 50
    assert {(row["key"], row["partition"]) for row in rows} == {
        (key, KafkaPartition.of(key)) for key in {row["key"] for row in rows}
    }


class KafkaPartition:
    """Where Kafka's default partitioner puts a key."""

    @staticmethod
    def of(key: bytes) -> int:
        cluster = SimpleNamespace(
            topics=lambda: {"t"},
            partitions_for_topic=lambda topic: set(range(PARTITIONS)),
            available_partitions_for_topic=lambda topic: set(range(PARTITIONS)),
        )
        return int(KafkaProducer.DEFAULT_CONFIG["partitioner"].partition("t", key, key, None, None, cluster))


@pytest.mark.stack
def test_a_record_that_is_too_large_has_failed_and_harms_no_other(broker: Kafka, topic: str, tmp_path: Path) -> None:
    workload = Listed([Record(0, b"k", b"a"), Record(1, b"k", b"b" * 2_000_000), Record(2, b"k", b"c")])
    producer = Producer(
        workload, Attempts(tmp_path / "attempts.log"), TopicSender(broker.bootstrap, Places((topic,), PARTITIONS))
    )
    producer.send(3)
    producer.close()
    assert producer.counts == {State.ACKNOWLEDGED: 2, State.FAILED: 1, State.UNKNOWN: 0}
    assert kept(judged(broker, topic, tmp_path), tmp_path)


@pytest.mark.stack
def test_lost_answers_are_unknown_and_fake_no_verdict(broker: Kafka, topic: str, tmp_path: Path, socks: Socks) -> None:
    sender = TopicSender(broker.bootstrap, Places((topic,), PARTITIONS))

    def answers(within_s: float) -> None:
        """Short where none is to come alone: through a proxy in this Python a busy machine takes its time."""
        sender._answer_within_s = within_s
        sender._connected = partial(sending.connect, broker.bootstrap, answer_within_s=within_s)

    producer = Producer(transactions(80), Attempts(tmp_path / "attempts.log"), sender)
    producer.send(20)
    assert producer.acknowledged == 20
    answers(within_s=2.0)
    socks.swallow = True
    producer.send(20)
    assert producer.counts[State.UNKNOWN] == 20
    socks.swallow, socks.refuse = False, True
    producer.send(20)
    assert (producer.counts[State.UNKNOWN], producer.counts[State.FAILED]) == (20, 20)
    answers(within_s=30.0)
    socks.refuse = False
    producer.send(20)
    producer.close()
    assert producer.done
    report = judged(broker, topic, tmp_path)
    assert kept(report, tmp_path)
    assert set(range(20, 40)) >= set(report.recovered) != set()
    told = read(tmp_path / "attempts.log").table.to_pylist()
    assert {row["seq"] for row in told if row["state"] == State.UNKNOWN} == {*range(20, 40)}
    assert producer.acknowledged == 40
    assert report.foreign == 0


@pytest.mark.stack
def test_cut_answers_give_no_false_verdict(broker: Kafka, topic: str, tmp_path: Path, socks: Socks) -> None:
    """About three answers in ten are cut, the portions are small so that many are exposed."""
    rng = random.Random(12)
    sender = TopicSender(broker.bootstrap, Places((topic,), PARTITIONS), answer_within_s=3.0)
    producer = Producer(transactions(300), Attempts(tmp_path / "attempts.log"), sender)
    socks.cut = lambda: rng.random() < 0.3
    while not producer.done:
        producer.send(5)
    socks.cut = lambda: False
    producer.close()
    assert socks.cuts >= 20
    report = judged(broker, topic, tmp_path)
    assert kept(report, tmp_path)
    assert report.acknowledged + report.failed + report.unknown == 300
    assert report.acknowledged > 100


@pytest.mark.stack
def test_transactions_are_read_as_committed(broker: Kafka, topic: str, tmp_path: Path) -> None:
    """The end of a transaction takes an offset and gives no record; an aborted one gives no records either."""
    writer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="t1")
    writer.init_transactions()
    for word, finish in [(b"yes", writer.commit_transaction), (b"no", writer.abort_transaction)] * 2:
        writer.begin_transaction()
        for partition in range(PARTITIONS):
            writer.send(topic, word, partition=partition, headers=[("other", b"x"), (HEADER, b"not eight bytes")])
        writer.flush(ANSWER_S)
        finish()
    path = tmp_path / "source.parquet"
    ends = read_back(broker.bootstrap, Places((topic,), PARTITIONS), path, within_s=ANSWER_S)
    assert ends == dict.fromkeys(range(PARTITIONS), 8)
    rows = read_source(path).to_pylist()
    assert sorted((row["partition"], row["offset"]) for row in rows) == [(p, o) for p in range(3) for o in (0, 4)]
    assert {(row["value"], row["key"], row["seq"]) for row in rows} == {(b"yes", None, None)}
    writer.begin_transaction()
    writer.send(topic, b"open", partition=1).get(ANSWER_S)
    with pytest.raises(WaitError, match="open transactions in the source to end"):
        read_back(broker.bootstrap, Places((topic,), PARTITIONS), path, within_s=5)
    assert read_source(path).num_rows == 6
    writer.commit_transaction()
    writer.close(5)
    assert read_back(broker.bootstrap, Places((topic,), PARTITIONS), path, within_s=ANSWER_S)[1] == 10
    assert read_source(path).num_rows == 7


@pytest.mark.stack
def test_a_topic_that_was_never_made_is_left_out(broker: Kafka, topic: str, tmp_path: Path) -> None:
    create = partial(broker.topics.create, f"{topic}.2", partitions=PARTITIONS)
    own = Topic(
        bootstrap=broker.bootstrap, topic=topic, group=topic, partitions=PARTITIONS, topics=broker.topics,
        others=(f"{topic}.2",), last=LastTopic(at=250, create=create),
    )  # fmt: skip
    source = OpenTopic(own)
    assert source.ends() == source.read_back(tmp_path / "source.parquet", within_s=ANSWER_S) == {0: 0, 1: 0, 2: 0}
    assert own.last is not None
    # The broker did it, and the answer was lost.
    create()
    own.last.make(within_s=ANSWER_S)
    assert source.ends() == dict.fromkeys(range(6), 0)


@pytest.mark.subprocess
def test_an_empty_topic_and_a_foreign_record_are_read_back(broker: Kafka, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "source.parquet"
    assert read_back(broker.bootstrap, Places((topic,), PARTITIONS), path, within_s=ANSWER_S) == dict.fromkeys(
        range(PARTITIONS), 0
    )
    assert read_source(path).num_rows == 0
    writer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    writer.send(topic, None, key=b"gone", partition=0, timestamp_ms=1234).get(ANSWER_S)
    writer.send(topic, b"v", partition=0, headers=[(HEADER, struct.pack(">q", 5))]).get(ANSWER_S)
    writer.close(5)
    read_back(broker.bootstrap, Places((topic,), PARTITIONS), path, within_s=ANSWER_S)
    first, second = read_source(path).to_pylist()
    assert first == {"partition": 0, "offset": 0, "timestamp_ms": 1234, "key": b"gone", "value": None, "seq": None}
    assert second["seq"] == 5


@pytest.mark.stack
def test_a_topic_that_is_not_all_there_is_refused(broker: Kafka, topic: str, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="asked for the topic missing; saw none"):
        read_back(broker.bootstrap, Places(("missing",), PARTITIONS), tmp_path / "source.parquet", within_s=ANSWER_S)
    writer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for _ in range(3):
        writer.send(topic, b"v", partition=2).get(ANSWER_S)
    writer.close(5)
    broker.topics._connected().delete_records({TopicPartition(topic, 2): 2})
    with pytest.raises(HarnessError, match="threw away 2 records of partition 2"):
        read_back(broker.bootstrap, Places((topic,), PARTITIONS), tmp_path / "source.parquet", within_s=ANSWER_S)
    assert list(tmp_path.iterdir()) == []


def test_nobody_there_is_one_clear_error_and_nobody_goes_on_asking(tmp_path: Path) -> None:
    nobody, before = "127.0.0.1:1", {*threading.enumerate()}
    with pytest.raises(StackError, match=r"asked Kafka at 127\.0\.0\.1:1 to take records"):
        sending.connect(nobody, answer_within_s=0.5)
    with pytest.raises(StackError, match=r"asked Kafka at 127\.0\.0\.1:1 for the topic t"):
        read_back(nobody, Places(("t",), PARTITIONS), tmp_path / "source.parquet", within_s=0.5)
    with pytest.raises(kafka_errors.KafkaError), whole() as client:
        KafkaAdminClient(bootstrap_servers=nobody, bootstrap_timeout_ms=300, kafka_client=client)
    assert {*threading.enumerate()} <= before


def test_every_client_of_a_broker_ends_with_its_constructor_where_nobody_answers() -> None:
    """Each is given connections that somebody closes (`whole`)."""
    made = [
        node
        for path in (Path(__file__).parents[1] / "harness").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in CLIENTS
    ]
    assert len(made) >= 5
    assert [ast.unparse(node) for node in made if "kafka_client" not in {each.arg for each in node.keywords}] == []


def test_the_header_of_the_ledger_is_what_consumers_see() -> None:
    assert HEADER == "onceproof-seq"
    assert ledger.SOURCE.names == ["partition", "offset", "timestamp_ms", "key", "value", "seq"]
    assert KafkaConsumer.DEFAULT_CONFIG["isolation_level"] == "read_uncommitted"  # so read_back has to ask for more
