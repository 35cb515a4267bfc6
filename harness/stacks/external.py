"""The stack `external`: Kafka, Postgres and Spark that are already there. The drivers are ours and run on this machine.

Nothing is touched that was not made here: each run has a topic, schemas and a folder of its own, and they are dropped
after it, by the session's reaper if the harness is gone by then (`python -m harness.stacks.external FILE`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import socket
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
from kafka.errors import KafkaError
from psycopg2.extensions import parse_dsn

from harness import failpoint
from harness.components.kafka.topics import Topics
from harness.components.postgres.database import Databases
from harness.components.spark import driver
from harness.errors import StackError, UsageError
from harness.hosts.local import LocalProcess, carrying
from harness.machine import class_data, jars, java
from harness.scenario import Pipeline
from harness.session.session import Session
from harness.stack import MEANS, Driver, Lease
from harness.stacks.base import SessionStack
from harness.stacks.rooms import Named, Rooms, drop
from harness.stacks.where import Where

ANSWER_S = 10.0
POSTGRES, MASTER, PORTS = 5432, 7077, 1 << 16
PLAIN = re.compile(r"[\w.-]+")
"""A host by name or by IPv4 address."""


class ExternalStack(SessionStack):
    """A cluster that is not ours: faults hit the drivers alone."""

    name = "external"
    means = MEANS["external"]

    def __init__(self, where: Where, logs: Path) -> None:
        self.where = where
        super().__init__(logs)
        self._databases = databases(where.postgres)
        self._host, self._port = master_of(where.spark_master)
        self._made: dict[str, Named] = {}

    def up(self) -> None:
        """Look that each answers. Raises StackError with the first that does not."""
        self._ready()
        self._java = java.find()
        self._jars = jars.resolve(self._java)
        self._topics = Topics(self.where.kafka)
        try:
            self._seen = {"kafka": self._kafka(), "postgres": self._postgres(), "spark": self._spark()}
            self._session = Session()
        except BaseException:
            self._topics.close()
            raise

    def _kafka(self) -> str:
        # The client would knock for seconds before it says so.
        reasons = [_silent(place) for place in self.where.kafka.split(",")]
        if all(reasons):
            raise StackError(f"asked for Kafka at {self.where.kafka}; it does not answer: {reasons[0]}")
        try:
            return str(self._topics.cluster()["cluster_id"])
        except KafkaError as error:
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
        """Make the topic, schemas and folders of one run. Raises StackError; then nothing of it is left."""
        rooms = self._rooms()
        self._made[run_id] = rooms.named(run_id)
        # Before anything is made: whoever is left alive then drops it.
        self._remember()
        try:
            return rooms.make(run_id, partitions=partitions, root=root)
        except BaseException:
            self._drop(run_id)
            raise

    def release(self, lease: Lease, *, keep: bool = False) -> None:
        """Drop what `lease` made; `keep` leaves it for good: it is on servers that go on."""
        if self._session is None:
            return
        if keep:
            self._made.pop(lease.run_id, None)
            self._remember()
        else:
            self._drop(lease.run_id)

    def _drop(self, run_id: str) -> None:
        """Raises StackError; then the session's end tries again."""
        made = self._made.get(run_id)
        if made is not None:
            self._rooms().drop(made)
            del self._made[run_id]
            self._remember()

    def _remember(self) -> None:
        """Tell the session's reaper what it would have to drop."""
        session, server = self._up(), asdict(self._databases)
        made = {"kafka": self.where.kafka, "postgres": server, "made": [asdict(each) for each in self._made.values()]}
        path = session.keep("made.json", json.dumps(made, default=str))
        argv = [sys.executable, "-m", "harness.stacks.external", str(path)]
        env = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(Path(__file__).parents[2])}
        session.at_the_end(json.dumps({"argv": argv, "env": env}))

    def launch(self, lease: Lease, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one life of the pipeline. Its placeholders are already filled in."""
        return driver.launch(self._up(), lease, pipeline, self._machine(), number=number, log=log)

    def conf(self, lease: Lease, pipeline: Pipeline) -> dict[str, str]:
        """What a driver is given besides the pipeline's own `conf`. Holds no secret."""
        return {"spark.driver.memory": driver.MEMORY, **driver.settings(lease, pipeline, self._machine())}

    def _machine(self) -> driver.Machine:
        flags = class_data.flags(class_data.Kind.DRIVER, self._java, self._jars)
        return driver.Machine(
            java=self._java,
            jars=self._jars,
            flags=flags,
            host=self._ours,
            python=self.where.executor_python,
            shipped=self._zip(),
            scratch=self._up().folder / "scratch",
            # A name given by the user may be one that only others see.
            bind="0.0.0.0" if self.where.driver_host else self._ours,
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
        return carrying(driver.mark(lease))

    def health(self) -> None:
        """Raise StackError if our own session is in trouble; the cluster's health is its owner's."""
        self._up().guard()

    def describe(self) -> dict[str, Any]:
        """Addresses without secrets, and what was seen there, for run.json."""
        session = self._up()
        return {
            "stack": self.name,
            "asked": self._asked(),
            "session": session.id,
            "reapers_replaced": session.rearmed,
            "java": self._java.text,
            "jars": self._jars.digest,
            "kafka": {"at": self.where.kafka, "cluster_id": self._seen["kafka"]},
            "postgres": {"at": f"{self._databases.host}:{self._databases.port}", "version": self._seen["postgres"]},
            "spark": {"at": self.where.spark_master, "driver_host": self._ours},
        }

    def _asked(self) -> str:
        """What a command line says to get this cluster; the password is the reader's own (PGPASSWORD)."""
        server = self._databases
        said = {**asdict(self.where), "postgres": server.plain()}
        given = ((name.replace("_", "-"), shlex.quote(str(value))) for name, value in said.items() if value)
        return " ".join([f"--stack {self.name}", *(f"--{name} {value}" for name, value in given)])

    def down(self) -> None:
        """End our drivers and drop what is left of our runs. Safe to call twice."""
        session = self._session
        if session is None:
            return
        # Whatever of it fails, the rest is done; what could not be dropped is tried once more by the session's end.
        with contextlib.ExitStack() as steps:
            steps.callback(session.close)
            steps.callback(self._forget, session)
            for run_id in list(self._made):
                steps.callback(self._drop, run_id)

    def _forget(self, session: Session) -> None:
        if not self._made:
            session.nothing_left()
        self._session = None
        self._topics.close()

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
            shared=True,
        )


def _silent(place: str) -> str:
    """Why nobody can be talked to at `host:port`; empty if somebody listens. Raises UsageError for no such thing."""
    host, _, port = place.strip().rpartition(":")
    if not PLAIN.fullmatch(host) or not port.isdigit():
        raise UsageError(f"--kafka must be HOST:PORT, or several with commas{_not(place)}")
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
    except psycopg2.ProgrammingError:
        # libpq's own words quote what it was given, with the password.
        raise UsageError(
            "--postgres must be a libpq address, as postgresql://user:password@host/database; what was given is none"
        ) from None
    unknown = sorted(set(parts) - {"host", "port", "user", "password", "dbname"})
    if unknown:
        raise UsageError(
            f"--postgres must be host, port, user, password and database alone; it has {', '.join(unknown)}"
        )
    host, port = parts.get("host", "127.0.0.1"), parts.get("port", str(POSTGRES))
    if not port.isdigit() or not 0 < int(port) < PORTS or not PLAIN.fullmatch(host):
        # Not echoed: where a password holds a slash, what looks like a host is a part of it.
        raise UsageError(
            "--postgres must be one TCP address, postgresql://user:password@host:port/database; what was given has no "
            "such host and port; write / @ : and % of a password as %2F %40 %3A %25, or give it in PGPASSWORD"
        )
    name = parts.get("dbname") or parts.get("user") or "postgres"
    return Databases(
        host,
        int(port),
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
    if parts.scheme != "spark" or not port or "@" in url or not PLAIN.fullmatch(parts.hostname or ""):
        raise UsageError(f"--spark-master must be spark://HOST:PORT{_not(url)}")
    return str(parts.hostname), port


def _not(given: str) -> str:
    """What was given instead; not where it may hold a password."""
    return "; what was given has an @" if "@" in given else f", not {given!r}"


def main(path: Path) -> int:
    """Drop what a dead session had made, each by itself; how many could not be dropped."""
    said = json.loads(path.read_text(encoding="utf-8"))
    topics, server = Topics(said["kafka"]), Databases(**said["postgres"])
    failed = 0
    for each in said["made"]:
        try:
            drop(Named(**{**each, "folder": Path(each["folder"])}), topics, server, sure=True)
        except StackError as error:
            print(error, file=sys.stderr)
            failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
