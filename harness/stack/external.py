"""The stack `external`: Kafka, Postgres and Spark that are already there. The drivers are ours and run on this machine.

Nothing is touched that was not made here: each run has a topic, schemas and a folder of its own, and they are dropped
after it, by the session's reaper if the harness is gone by then (`python -m harness.stack.external FILE`).
"""

from __future__ import annotations

import json
import os
import socket
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import psycopg2
from kafka.errors import KafkaError
from psycopg2.extensions import parse_dsn

from harness import failpoint
from harness.errors import StackError, UsageError
from harness.scenario import Do, Pipeline
from harness.stack import cds, driver, jars, java, reaper
from harness.stack.base import Driver, Lease
from harness.stack.databases import Databases
from harness.stack.local import LocalProcess, processes
from harness.stack.rooms import Rooms
from harness.stack.session import Session, need_space
from harness.stack.topics import Topics
from harness.stack.where import Where

ANSWER_S = 10.0
POSTGRES, MASTER = 5432, 7077


class ExternalStack:
    """A cluster that is not ours: faults hit the drivers alone."""

    name = "external"
    powers: frozenset[str] = frozenset({Do.KILL_DRIVER, Do.PAUSE_DRIVER, Do.STOP_DRIVER})

    def __init__(self, where: Where, logs: Path) -> None:
        self.where = where
        self.logs = logs.absolute()
        self._databases = databases(where.postgres)
        self._host, self._port = master_of(where.spark_master)
        self._session: Session | None = None
        self._leases: dict[str, Lease] = {}

    def up(self) -> None:
        """Look that each answers. Raises StackError with the first that does not."""
        if self._session is not None:
            raise StackError("this stack is up already; take it down first")
        self.logs.mkdir(parents=True, exist_ok=True)
        need_space(self.logs)
        self._java = java.find()
        self._jars = jars.resolve(self._java)
        self._topics = Topics(self.where.kafka)
        self._seen = {"kafka": self._kafka(), "postgres": self._postgres(), "spark": self._spark()}
        self._session = Session()

    def _kafka(self) -> str:
        # The client would knock for seconds before it says so.
        reasons = [_silent(place) for place in self.where.kafka.split(",")]
        if all(reasons):
            raise StackError(f"asked for Kafka at {self.where.kafka}; it does not answer: {reasons[0]}")
        try:
            return str(self._topics.cluster()["cluster_id"])
        except KafkaError as error:
            self._topics.close()
            raise StackError(f"asked for Kafka at {self.where.kafka}; it does not answer: {error}") from error

    def _postgres(self) -> str:
        place = f"{self._databases.host}:{self._databases.port}"
        try:
            return self._databases.ask("show server_version", of=self._databases.names["main"])
        except psycopg2.Error as error:
            raise StackError(f"asked for Postgres at {place}; it refused: {str(error).strip()}") from error

    def _spark(self) -> str:
        try:
            with socket.create_connection((self._host, self._port), timeout=ANSWER_S) as connection:
                # As the machine that the master sees knocking, unless we were told better.
                self._ours = self.where.driver_host or str(connection.getsockname()[0])
        except OSError as error:
            raise StackError(
                f"asked for a Spark master at {self.where.spark_master}; nobody is there: {error}"
            ) from error
        return self.where.spark_master

    def lease(self, run_id: str, *, partitions: int, root: Path | None = None) -> Lease:
        """Make the topic, schemas and folders of one run. Raises StackError."""
        made = self._rooms().make(run_id, partitions=partitions, root=root)
        self._leases[run_id] = made
        self._remember()
        return made

    def release(self, lease: Lease, *, keep: bool = False) -> None:
        """Drop what `lease` made; `keep` leaves it for good: it is on servers that go on."""
        if self._session is None:
            return
        if not keep:
            self._rooms().drop(lease)
        self._leases.pop(lease.run_id, None)
        self._remember()

    def _remember(self) -> None:
        """Tell the session's reaper what it would have to drop."""
        made = {
            "kafka": self.where.kafka,
            "postgres": self.where.postgres,
            "topics": [lease.topic for lease in self._leases.values()],
            "groups": [lease.group for lease in self._leases.values()],
            "schemas": [lease.schema for lease in self._leases.values()],
        }
        session = self._up()
        list_of = session.keep("made.json", json.dumps(made))
        argv = [sys.executable, "-m", "harness.stack.external", str(list_of)]
        env = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(Path(__file__).parents[2])}
        session.at_the_end(json.dumps({"argv": argv, "env": env}))

    def launch(self, lease: Lease, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one life of the pipeline. Its placeholders are already filled in."""
        return driver.launch(self._up(), lease, pipeline, self._machine(), number=number, log=log)

    def conf(self, lease: Lease, pipeline: Pipeline) -> dict[str, str]:
        """What a driver is given besides the pipeline's own `conf`. Holds no secret."""
        return {"spark.driver.memory": driver.MEMORY, **driver.settings(lease, pipeline, self._machine())}

    def _machine(self) -> driver.Machine:
        flags = cds.flags(cds.Kind.DRIVER, self._java, self._jars)
        return driver.Machine(
            java=self._java,
            jars=self._jars,
            flags=flags,
            host=self._ours,
            python=self.where.executor_python,
            shipped=self._zip(),
        )

    def _zip(self) -> Path:
        """The failpoints, for executors on which nothing of ours is installed."""
        path = self._up().folder / "failpoints.zip"
        if not path.exists():
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("harness/__init__.py", "")
                archive.write(failpoint.__file__, "harness/failpoint.py")
        return path

    def executors(self, lease: Lease) -> Sequence[LocalProcess]:
        """None that we have power over."""
        return []

    def processes(self, lease: Lease) -> list[LocalProcess]:
        """Every living process of this run's drivers."""
        mark = f"{driver.RUN}={lease.run_id}"
        return processes(row.life for row in reaper.table().values() if reaper.carries(row.life.pid, mark))

    def health(self) -> None:
        """Raise StackError if our own session is in trouble; the cluster's health is its owner's."""
        self._up().guard()

    def describe(self) -> dict[str, Any]:
        """Addresses without secrets, and what was seen there, for run.json."""
        session = self._up()
        return {
            "stack": self.name,
            "session": session.id,
            "reapers_replaced": session.rearmed,
            "java": self._java.text,
            "jars": self._jars.digest,
            "kafka": {"at": self.where.kafka, "cluster_id": self._seen["kafka"]},
            "postgres": {"at": f"{self._databases.host}:{self._databases.port}", "version": self._seen["postgres"]},
            "spark": {"at": self.where.spark_master, "driver_host": self._ours},
        }

    def down(self) -> None:
        """End our drivers and drop what is left of our runs. Safe to call twice."""
        session = self._session
        if session is None:
            return
        for lease in list(self._leases.values()):
            self.release(lease)
        self._session = None
        self._topics.close()
        session.close()

    def __enter__(self) -> ExternalStack:
        self.up()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.down()

    def _rooms(self) -> Rooms:
        session = self._up()
        return Rooms(
            topics=self._topics,
            databases=self._databases,
            bootstrap=self.where.kafka,
            inside=self._databases,
            spark_master=self.where.spark_master,
            spark_home=jars.spark_home(),
            root=(self.where.folder or session.folder) / "runs",
        )

    def _up(self) -> Session:
        if self._session is None:
            raise StackError("the stack is not up")
        return self._session


def _silent(place: str) -> str:
    """Why nobody can be talked to at `host:port`; empty if somebody listens. Raises UsageError for no such thing."""
    host, _, port = place.strip().rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--kafka must be HOST:PORT, or several with commas, not {place!r}")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_S).close()
    except (OSError, OverflowError) as error:
        return str(error)
    return ""


def databases(dsn: str) -> Databases:
    """The server of a libpq address. `second` is the same database with schemas of its own: we make no database.
    Raises UsageError."""
    try:
        parts = parse_dsn(dsn)
    except psycopg2.ProgrammingError as error:
        raise UsageError(
            f"--postgres must be a libpq address, as postgresql://user:password@host/database: {error}"
        ) from None
    name = parts.get("dbname") or parts.get("user") or "postgres"
    return Databases(
        parts.get("host", "127.0.0.1"),
        int(parts.get("port", POSTGRES)),
        parts.get("user", "postgres"),
        parts.get("password", os.environ.get("PGPASSWORD", "")),
        names={"main": name, "second": name},
        suffixes={"main": "", "second": "_second"},
    )


def master_of(url: str) -> tuple[str, int]:
    """Host and port of `spark://host:port`. Raises UsageError."""
    parts = urlsplit(url)
    try:
        port = parts.port or MASTER
    except ValueError:
        port = 0
    if parts.scheme != "spark" or not parts.hostname or not port:
        raise UsageError(f"--spark-master must be spark://HOST:PORT, not {url!r}")
    return parts.hostname, port


def main(path: Path) -> None:
    """Drop what a dead session had made."""
    made = json.loads(path.read_text(encoding="utf-8"))
    topics, server = Topics(made["kafka"]), databases(made["postgres"])
    for topic, group in zip(made["topics"], made["groups"], strict=True):
        topics.delete(topic)
        topics.delete_group(group)
    for schema in made["schemas"]:
        server.drop_schema(schema)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
