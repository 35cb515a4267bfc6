"""Makes and drops what a run has for itself on any stack: a topic, a schema in each database, a folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.stack.base import Addresses, Lease
from harness.stack.databases import Databases
from harness.stack.topics import Topics


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

    def make(self, run_id: str, *, partitions: int, root: Path | None) -> Lease:
        """The room of one run. Raises StackError."""
        topic, schema = f"onceproof-{run_id}", "run_" + run_id.lower().replace("-", "_")
        folder = self.root / run_id
        folder.mkdir(parents=True)
        self.topics.create(topic, partitions=partitions)
        self.databases.create_schema(schema)
        return Lease(
            run_id=run_id,
            topic=topic,
            group=topic,
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

    def drop(self, lease: Lease) -> None:
        """Take all of it away, whatever still uses it."""
        self.topics.delete(lease.topic)
        self.topics.delete_group(lease.group)
        self.databases.drop_schema(lease.schema)
        shutil.rmtree(lease.folder, ignore_errors=True)
