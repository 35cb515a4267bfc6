"""The stack `processes`, for real: it comes up, provides, launches, strikes and leaves nothing."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from harness import wait
from harness.components.kafka import process as kafka
from harness.components.kafka.consumer_group import followed
from harness.errors import StackError
from harness.faults import FAULTS
from harness.hosts.local import LocalProcess
from harness.resources import RunResources
from harness.scenario import Pipeline, Victim
from harness.session import reaper, session
from harness.spark import standalone_processes as spark
from harness.stack import Stack
from harness.stacks.processes.stack import ProcessesStack
from harness.stacks.supported import supported
from tests.provided import both, broker, database, dsn, schema, topic

pytestmark = pytest.mark.stack

PROGRAM = """
import sys, threading
from pathlib import Path
from typing import Any
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
counted = spark.sparkContext.parallelize(range(100), 4).map(lambda n: n * 2).sum()
Path(sys.argv[1]).write_text(str(counted))
while True:
    spark.sparkContext.parallelize(range(4), 4).count()
    threading.Event().wait(0.2)
"""
DATABASES = {"postgres": "onceproof", "postgres.second": "onceproof_second"}
HARNESS = """
import sys, threading
from pathlib import Path
from typing import Any
from harness.stacks.processes.stack import ProcessesStack
stack = ProcessesStack(Path(sys.argv[1]), needs=["kafka", "postgres"])
stack.up()
print(stack.describe()["session"], flush=True)
threading.Event().wait(120)
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessesStack]:
    with ProcessesStack(tmp_path_factory.mktemp("logs")) as made:
        yield made


@pytest.fixture
def own(stack: ProcessesStack, request: pytest.FixtureRequest) -> Iterator[RunResources]:
    made = stack.provide(f"t{abs(hash(request.node.name)) % 10**8}", both(3))
    yield made
    stack.release(made)


def ours(name: str) -> list[psutil.Process]:
    """The processes of a session, found without the code under test: by environment, command line or folder."""
    found = []
    for process in psutil.process_iter():
        try:
            texts = (process.environ().get(reaper.MARKER, ""), *process.cmdline(), process.cwd())
            if process.status() != psutil.STATUS_ZOMBIE and any(name in text for text in texts):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_it_is_a_stack_with_every_fault_but_those_of_networks_and_of_yarn(stack: ProcessesStack) -> None:
    whole: Stack = stack
    yarn = ("kill nodemanager", "restart resourcemanager", "kill driver without resourcemanager")
    elsewhere = ("disconnect driver", *yarn)
    assert supported(whole.name) == [name for name in FAULTS.all() if name not in elsewhere]
    stack.health()


def test_a_run_is_given_a_topic_schemas_and_addresses(stack: ProcessesStack, own: RunResources) -> None:
    assert broker(stack).topics.end_offsets(topic(own).topic) == {0: 0, 1: 0, 2: 0}
    assert own.folder.is_dir() and not own.checkpoint.exists()
    for label in ("postgres", "postgres.second"):
        with psycopg2.connect(dsn(own, label)) as connection, connection.cursor() as cursor:
            cursor.execute("create table seen (n int)")
            cursor.execute("select current_schema(), current_database()")
            assert cursor.fetchone() == (schema(own).name, DATABASES[label])
        assert f"currentSchema={schema(own).name}" in own.placeholders()[f"{label}.jdbc"]
    asked = {**os.environ, **own.environment}
    psql = "import psycopg2; c = psycopg2.connect('').cursor(); c.execute('select count(*) from seen')"
    assert subprocess.run([sys.executable, "-c", psql], env=asked, check=False).returncode == 0


def test_release_leaves_nothing_even_of_what_is_still_held(stack: ProcessesStack) -> None:
    made = stack.provide("held", both())
    writer, reader = psycopg2.connect(dsn(made)), psycopg2.connect(dsn(made))
    with writer.cursor() as cursor:
        cursor.execute("create table seen (n int)")
        writer.commit()
        cursor.execute("insert into seen values (1)")
        cursor.execute("prepare transaction 'left by a dead pipeline'")
    with reader.cursor() as cursor:
        cursor.execute("select * from seen")
    stack.release(made, keep=True)
    assert made.folder.exists()
    stack.release(made)
    assert not made.folder.exists()
    assert broker(stack).topics.end_offsets(topic(made).topic) == {}
    again = stack.provide("held", both())
    stack.release(again)


def test_groups_and_offsets_are_told(stack: ProcessesStack, own: RunResources) -> None:
    producer = KafkaProducer(bootstrap_servers=topic(own).bootstrap)
    for partition in (0, 0, 2):
        producer.send(topic(own).topic, b"x", partition=partition)
    producer.close()
    assert broker(stack).topics.end_offsets(topic(own).topic) == {0: 2, 1: 0, 2: 1}
    group = followed(topic(own))
    assert group.offsets() == {}
    consumer = KafkaConsumer(
        bootstrap_servers=topic(own).bootstrap, group_id=topic(own).group, auto_offset_reset="earliest"
    )
    consumer.assign([TopicPartition(topic(own).topic, 0)])
    assert wait.until(
        "two records", lambda: len(consumer.poll(500).get(TopicPartition(topic(own).topic, 0), [])), within_s=60
    )
    consumer.commit()
    consumer.close()
    assert group.offsets() == {0: 2}
    group.close()


def sockets(process: psutil.Process) -> list[Any]:
    """Where a process listens. One of Postgres' own, or a helper of Spark's, may have ended since it was found."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]
    return []


def test_a_driver_runs_its_executor_is_found_and_replaced_and_all_listen_on_loopback(
    stack: ProcessesStack, own: RunResources, tmp_path: Path
) -> None:
    program, result, log = tmp_path / "program.py", tmp_path / "result", tmp_path / "driver.log"
    program.write_text(PROGRAM)
    driver = stack.launch(own, Pipeline(entry=str(program), args=(str(result),)), number=1, log=log)

    def counted() -> str | wait.Waiting:
        assert driver.poll() is None, log.read_text()
        return result.read_text() if result.exists() else wait.Waiting(f"executors {stack.executors(own)}")

    assert wait.until("a Spark job", counted, within_s=300) == "9900"
    (first,) = stack.executors(own)
    assert "CoarseGrainedExecutorBackend" in " ".join(first.command())
    listening = [each for process in ours(stack.describe()["session"]) for each in sockets(process)]
    assert len(listening) >= 8
    for connection in listening:
        address = ipaddress.ip_address(connection.laddr.ip.removeprefix("::ffff:"))
        assert address.is_loopback, connection
    first.send(signal.SIGKILL)

    def replaced() -> list[LocalProcess]:
        return [executor for executor in stack.executors(own) if executor.pid != first.pid]

    wait.until("another executor", replaced, within_s=60)
    (jvm,), (python,) = driver.processes(Victim.JVM), driver.processes(Victim.PYTHON)
    python.send(signal.SIGSTOP)
    jvm.send(signal.SIGKILL)
    wait.until("the driver to be gone", lambda: driver.poll() is not None, within_s=60)
    assert driver.poll() == -signal.SIGKILL and driver.processes() == []
    assert python in stack.processes(own), "its program lives on and is no longer in its tree"
    python.send(signal.SIGKILL)
    wait.until("the executors to follow", lambda: not stack.processes(own), within_s=60)


def test_another_lease_has_no_executors(stack: ProcessesStack, own: RunResources) -> None:
    assert stack.executors(own) == []


def test_a_broker_killed_and_started_again_has_its_records(stack: ProcessesStack, own: RunResources) -> None:
    producer = KafkaProducer(bootstrap_servers=topic(own).bootstrap, acks="all")
    for _ in range(100):
        producer.send(topic(own).topic, b"x", partition=1)
    producer.close()
    server = broker(stack)._process
    assert server is not None
    top = reaper.identify(server.pid)
    assert top is not None
    reaper.fell(reaper.descendants(reaper.table(), {top}), within_s=60)
    wait.until("its end", lambda: server.poll() is not None, within_s=60)
    with pytest.raises(StackError, match="kafka ended with signal 9"):
        stack.health()
    broker(stack).start()
    broker(stack).stop()
    # One that a fault has ended is not missed.
    stack.health()
    broker(stack).start()
    stack.health()
    assert broker(stack).topics.end_offsets(topic(own).topic)[1] == 100


def test_a_database_killed_and_started_again_has_its_rows(stack: ProcessesStack, own: RunResources) -> None:
    with psycopg2.connect(dsn(own)) as connection, connection.cursor() as cursor:
        cursor.execute("create table seen (n int); insert into seen values (7)")
    server = database(stack)._process
    assert server is not None
    top = reaper.identify(server.pid)
    assert top is not None
    reaper.fell(reaper.descendants(reaper.table(), {top}), within_s=60)
    wait.until("its end", lambda: server.poll() is not None, within_s=60)
    with pytest.raises(StackError, match="postgres ended with signal 9"):
        stack.health()
    database(stack).start()
    database(stack).stop()
    # One that a fault has ended is not missed.
    stack.health()
    database(stack).start()
    stack.health()
    with psycopg2.connect(dsn(own)) as connection, connection.cursor() as cursor:
        cursor.execute("select n from seen")
        assert cursor.fetchall() == [(7,)]


@pytest.mark.parametrize("user", ["onceproof", "postgres", "root", "nobody"])
def test_without_the_password_nobody_gets_into_postgres(own: RunResources, user: str) -> None:
    place: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": own.environment["PGPORT"],
        "dbname": "onceproof",
        "user": user,
    }
    with pytest.raises(psycopg2.OperationalError, match="password"):
        psycopg2.connect(**place)
    with pytest.raises(psycopg2.OperationalError, match="authentication failed"):
        psycopg2.connect(**place, password="guess")


def test_its_description_is_json_and_holds_no_secret(stack: ProcessesStack, own: RunResources) -> None:
    text = json.dumps(stack.describe(["kafka", "postgres"]))
    assert own.secrets and not any(secret in text for secret in own.secrets)
    assert '"kafka": {"version": "4.2.0"' in text


def test_up_twice_and_work_before_up_are_refused(stack: ProcessesStack, tmp_path: Path) -> None:
    with pytest.raises(StackError, match="up already"):
        stack.up()
    with pytest.raises(StackError, match="not up"):
        ProcessesStack(tmp_path).provide("x", both())


def test_a_taken_kafka_port_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        monkeypatch.setenv(kafka.PORT_VARIABLE, str(taken))
        with pytest.raises(StackError, match=f"port {taken} was asked for Kafka"):
            ProcessesStack(tmp_path, needs=["kafka"]).up()
    monkeypatch.setenv(kafka.PORT_VARIABLE, "many")
    with pytest.raises(StackError, match="must be a port number"):
        ProcessesStack(tmp_path, needs=["kafka"]).up()


def test_a_stack_that_fails_half_way_takes_everything_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def fail(self: spark.Spark) -> None:
        wait.until("the others to have started", lambda: len(ours(self._session.id)) > 3, within_s=60)
        seen.append(self._session.id)
        raise StackError("no Spark today")

    monkeypatch.setattr(spark.Spark, "start", fail)
    with pytest.raises(StackError, match="no Spark today"):
        ProcessesStack(tmp_path, needs=["kafka", "postgres"]).up()
    assert len(seen) == 1
    assert ours(seen[0]) == []
    assert not (session.root() / seen[0]).exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_harness_leaves_nothing_of_a_real_stack(tmp_path: Path, number: signal.Signals) -> None:
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert harness.stdout is not None
    with harness.stdout as out:
        name = out.readline().strip()
    assert len(ours(name)) > 6
    harness.send_signal(number)
    harness.wait()
    wait.until("nothing to be left", lambda: not ours(name), within_s=60.0)
    wait.until("the folder to go", lambda: not (session.root() / name).exists(), within_s=60.0)
