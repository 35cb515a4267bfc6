"""A broker with Event Hubs' login: who gets in, what a rotated key does, and what is left of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError

from harness.components.eventhubs.process import EventHubs
from harness.components.kafka.access import Access, client
from harness.components.kafka.access.there import KafkaThere
from harness.components.kafka.readback import read_back
from harness.components.kafka.run_topic import Places, Topic
from harness.components.kafka.sender import TopicSender
from harness.errors import StackError
from harness.machine import jars, java
from harness.resources import Resources
from harness.run_folder.ledger import State
from harness.session.session import Session
from harness.workloads.base import Record

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def hubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventHubs]:
    session, found = Session(), java.find()
    try:
        server = EventHubs(session, found, jars.resolve(found), logs=tmp_path_factory.mktemp("logs"))
        server.start()
        yield server
        server.close()
    finally:
        session.close()
    assert not server.folder.exists(), "keys and certificate go with the session"


@pytest.fixture(scope="module")
def own(hubs: EventHubs) -> Resources:
    return hubs.provide("t1", {"": {"partitions": 1}})[""]


def tried(access: Access) -> None:
    """Send one record by that login. Raises KafkaError."""
    producer: Any = KafkaProducer(**client(access), bootstrap_timeout_ms=5000, max_block_ms=5000, retries=0)
    try:
        producer.send("onceproof-t1", b"x").get(timeout=10)
    finally:
        producer.close(timeout=1)


def program(hubs: EventHubs) -> Access:
    assert isinstance(hubs.inside, Access)
    return hubs.inside


def test_a_part_has_its_options_in_variables_and_nowhere_else(hubs: EventHubs, own: Resources) -> None:
    assert own.label == "eventhubs" and own.bare == ()
    assert own.placeholders["bootstrap"] == hubs.bootstrap
    assert "$ConnectionString" in own.environment["EVENTHUBS_SASL_JAAS_CONFIG"]
    trusted = Path(own.environment["EVENTHUBS_SSL_TRUSTSTORE_LOCATION"]).read_text()
    assert trusted.startswith("-----BEGIN CERTIFICATE-----")
    shown = f"{own.placeholders} {own.at} {hubs.describe()}"
    assert [secret for secret in own.secrets if secret in shown] == [] and own.secrets


def test_the_harness_sends_and_reads_with_a_login_of_its_own(hubs: EventHubs, own: Resources, tmp_path: Path) -> None:
    there: Topic = own.at
    sender = TopicSender(there.bootstrap, there.places)
    try:
        answers = sender.send([sender.placed(Record(seq, b"k", b"v")) for seq in range(20)])
    finally:
        sender.close()
    assert {answer.state for answer in answers} == {State.ACKNOWLEDGED}
    assert read_back(there.bootstrap, Places((there.topic,), 1), tmp_path / "source.parquet", within_s=30) == {0: 20}


@pytest.mark.parametrize("wrong", [{"password": "Endpoint=sb://127.0.0.1/;SharedAccessKey=x"}, {"ca": ""}])
def test_a_wrong_key_and_an_untrusted_certificate_are_refused(
    hubs: EventHubs, own: Resources, wrong: dict[str, str]
) -> None:
    access = Access(**{**vars(program(hubs)), **wrong})
    with pytest.raises(KafkaError):
        tried(access)


def test_kafka_by_its_address_with_a_login(hubs: EventHubs, own: Resources) -> None:
    there = KafkaThere(program(hubs).address())
    try:
        assert there.describe() == {"at": there.plain, "cluster_id": hubs.cluster_id}
        assert there.provide("t2", {"": {}})[""].environment["KAFKA_SECURITY_PROTOCOL"] == "SASL_SSL"
        there.drop("t2", [""])
    finally:
        there.close()


def test_kafka_by_its_address_with_a_wrong_password_is_a_clear_error(hubs: EventHubs) -> None:
    wrong = Access(**{**vars(program(hubs)), "password": "s3cret"})
    there = KafkaThere(wrong.address())
    try:
        with pytest.raises(StackError, match=r"asked for Kafka at sasl_ssl://.*Is the login right") as refused:
            there.describe()
    finally:
        there.close()
    assert "s3cret" not in str(refused.value)


def test_a_rotated_key_is_refused_until_it_counts_again(hubs: EventHubs, own: Resources) -> None:
    tried(program(hubs))
    hubs.stop()
    hubs.rotate()
    hubs.start()
    assert not hubs.refused()
    with pytest.raises(KafkaError):
        tried(program(hubs))
    assert hubs.refused()
    assert hubs.topics.end_offsets("onceproof-t1")[0] >= 21, "the harness still gets in"
    hubs.stop()
    hubs.rotate(back=True)
    hubs.start()
    tried(program(hubs))
    assert hubs.refused(), "it was, meanwhile"
    hubs.rotate()
    assert not hubs.refused()
    hubs.rotate(back=True)


def test_a_run_after_one_whose_key_was_rotated_for_good_has_the_key_that_counts(hubs: EventHubs) -> None:
    hubs.stop()
    hubs.rotate()
    hubs.start()
    (own,) = hubs.provide("t9", {"": {}}).values()
    tried(program(hubs))
    hubs.stop()
    hubs.rotate()
    hubs.start()
    with pytest.raises(KafkaError):
        tried(program(hubs))
    hubs.stop()
    hubs.rotate(back=True)
    hubs.start()
    tried(program(hubs))
    assert "$ConnectionString" in own.environment["EVENTHUBS_SASL_JAAS_CONFIG"]
