"""Makes and drops what a run has for itself on any stack: a topic, a schema in each database, a folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.errors import StackError
from harness.stack.base import Addresses, Lease
from harness.stack.databases import Databases
from harness.stack.topics import Topics


@dataclass(frozen=True, kw_only=True)
class Named:
    """What a run has for itself, by name."""

    topic: str
    group: str
    schema: str
    folder: Path


def drop(named: Named, topics: Topics, databases: Databases) -> None:
    """Take all of it away, whatever still uses it; silent about what is not there. Raises StackError."""
    topics.delete(named.topic)
    topics.delete_group(named.group)
    databases.drop_schema(named.schema)
    shutil.rmtree(named.folder, ignore_errors=True)


@dataclass(frozen=True, kw_only=True)
class Rooms:
    """How the harness reaches Kafka and Postgres, and how the pipeline's processes do (`bootstrap`, `inside`).

    `root` is the folder that holds the runs' folders; driver and executors see it under the same path."""

    topics: Topics
    databases: Databases
    bootstrap: str
    inside: Databases
    spark_master: str
    spark_home: Path
    root: Path

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
            environment=self.inside.environment(schema),
            secrets=(self.databases.password,),
        )

    def drop(self, named: Named) -> None:
        """Take all of it away. Raises StackError."""
        drop(named, self.topics, self.databases)
