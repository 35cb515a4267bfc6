"""Makes and drops what a run has for itself on any stack: a topic, a schema in each database, a folder."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.components.kafka.topics import Topics
from harness.components.postgres.database import Databases
from harness.errors import StackError
from harness.stack import Addresses, Lease


@dataclass(frozen=True, kw_only=True)
class Named:
    """What a run has for itself, by name."""

    topic: str
    group: str
    schema: str
    folder: Path


def drop(named: Named, topics: Topics, databases: Databases, *, sure: bool = False) -> None:
    """Take all of it away, whatever still uses it; silent about what is not there. Raises StackError, once everything
    was tried. `sure`: also for a topic, a group or a folder that stays, which no stack's end takes along."""
    with contextlib.ExitStack() as steps:
        steps.callback(_remove, named.folder, sure=sure)
        steps.callback(databases.drop_schema, named.schema)
        steps.callback(topics.delete_group, named.group, sure=sure)
        steps.callback(topics.delete, named.topic, sure=sure)


def _remove(folder: Path, *, sure: bool) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if sure and folder.exists():
        raise StackError(f"cannot remove all of {folder}: somebody else's program has written there; remove it")


@dataclass(frozen=True, kw_only=True)
class Rooms:
    """How the harness reaches Kafka and Postgres, and how the pipeline's processes do (`bootstrap`, `inside`).

    `root` is the folder that holds the runs' folders; driver and executors see it under the same path. `shared` says
    that the servers are somebody else's: what cannot be dropped there is an error."""

    topics: Topics
    databases: Databases
    bootstrap: str
    inside: Databases
    spark_master: str
    spark_home: Path
    root: Path
    shared: bool = False

    def named(self, run_id: str) -> Named:
        """What the things of a run are called."""
        topic, schema = f"onceproof-{run_id}", "run_" + run_id.lower().replace("-", "_")
        return Named(topic=topic, group=topic, schema=schema, folder=self.root / run_id)

    def make(self, run_id: str, *, partitions: int, root: Path | None) -> Lease:
        """The room of one run. Raises StackError."""
        named = self.named(run_id)
        topic, schema, folder = named.topic, named.schema, named.folder
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise StackError(f"cannot make the run's folder {folder}: {error.strerror}; name another one") from error
        self.topics.create(topic, partitions=partitions)
        self.databases.create_schema(schema)
        return Lease(
            run_id=run_id,
            topic=topic,
            group=named.group,
            schema=schema,
            partitions=partitions,
            bootstrap=self.topics.bootstrap,
            dsns={name: self.databases.dsn(name, schema) for name in self.databases.names},
            given=Addresses(
                bootstrap=self.bootstrap,
                dsns={name: self.inside.dsn(name, schema) for name in self.inside.names},
                jdbc={name: self.inside.jdbc(name, schema) for name in self.inside.names},
            ),
            spark_master=self.spark_master,
            spark_home=self.spark_home,
            folder=folder,
            checkpoint=folder / "checkpoint",
            root=root,
            shared=self.shared,
            environment=self.inside.environment(schema),
            secrets=(self.databases.password,),
        )

    def drop(self, named: Named) -> None:
        """Take all of it away. Raises StackError."""
        drop(named, self.topics, self.databases, sure=self.shared)
