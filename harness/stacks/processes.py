"""The stack `processes`: Kafka, Postgres and Spark as child processes of the harness. Needs no Docker and no root."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

from harness.components.kafka import process as kafka
from harness.components.postgres import process as postgres
from harness.components.spark import driver
from harness.components.spark import standalone as spark
from harness.hosts.local import LocalProcess, carrying, processes
from harness.hosts.together import together
from harness.machine import class_data, jars, java
from harness.run_folder.redact import redact_folder
from harness.scenario import Pipeline
from harness.session.session import Session
from harness.stack import MEANS, Driver, Lease
from harness.stacks.base import SessionStack
from harness.stacks.rooms import Rooms


class ProcessesStack(SessionStack):
    """One of everything, each on ports of its own. `logs` is where the services write.

    `executors` is how many a pipeline may ask for. Without `levers` drivers and executors run with a JVM's default
    flags: slower, the same otherwise; for measurements."""

    name = "processes"
    means = MEANS["processes"]

    def __init__(self, logs: Path, *, executors: int = 2, levers: bool = True) -> None:
        super().__init__(logs)
        self._executors = executors
        self._levers = levers
        self._flags: dict[class_data.Kind, tuple[str, ...]] = {}

    def up(self) -> None:
        """Start everything, in parallel; return when each part answers its own protocol. Raises StackError, and
        HarnessError when the disk is full; nothing is left running then."""
        self._ready()
        self._java = java.find()
        self._jars = jars.resolve(self._java)
        self._flags = {
            kind: class_data.flags(kind, self._java, self._jars) if self._levers else () for kind in class_data.Kind
        }
        self._session = Session()
        try:
            self._make(self._session)
            together([self.kafka.start, self.postgres.start, self.spark.start])
        except BaseException:
            self.down()
            raise

    def lease(self, run_id: str, *, partitions: int, root: Path | None = None) -> Lease:
        """Make the topic, schemas and folders of one run. Raises StackError."""
        return self._rooms().make(run_id, partitions=partitions, root=root)

    def release(self, lease: Lease, *, keep: bool = False) -> None:
        """Drop what `lease` made; `keep` leaves it until the stack goes down."""
        if not keep and self._session is not None:
            self._rooms().drop(self._rooms().named(lease.run_id))

    def _rooms(self) -> Rooms:
        session, databases = self._up(), self.postgres.databases
        return Rooms(
            topics=self.kafka.topics,
            databases=databases,
            bootstrap=self.kafka.bootstrap,
            inside=databases,
            spark_master=self.spark.master,
            spark_home=self.spark.home,
            root=session.folder / "runs",
        )

    def launch(self, lease: Lease, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one life of the pipeline. Its placeholders are already filled in."""
        return driver.launch(self._up(), lease, pipeline, self._machine(), number=number, log=log)

    def conf(self, lease: Lease, pipeline: Pipeline) -> dict[str, str]:
        """What a driver is given besides the pipeline's own `conf`. Holds no secret."""
        return {"spark.driver.memory": driver.MEMORY, **driver.settings(lease, pipeline, self._machine())}

    def _machine(self) -> driver.Machine:
        return driver.Machine(
            java=self._java,
            jars=self._jars,
            flags=self._flags[class_data.Kind.DRIVER],
            executor_flags=self._flags[class_data.Kind.EXECUTOR],
        )

    def executors(self, lease: Lease) -> list[LocalProcess]:
        """The executor processes of this run's application, oldest first."""
        return processes(self.spark.executors(driver.mark(lease)))

    def processes(self, lease: Lease) -> list[LocalProcess]:
        """Every living process of this run's pipeline that began with its mark. A JVM whose program died by itself has
        no parent that tells."""
        return carrying(driver.mark(lease))

    def health(self) -> None:
        """Raise StackError, naming the part and its log's last lines, if a part died that nobody hurt."""
        self._up().guard()
        for part in (self.kafka, self.postgres, self.spark):
            part.check()

    def describe(self) -> dict[str, Any]:
        """Versions and settings, for run.json. Holds no secret."""
        session = self._up()
        return {
            "stack": self.name,
            "session": session.id,
            "reapers_replaced": session.rearmed,
            "java": self._java.text,
            "jars": self._jars.digest,
            "kafka": {"version": jars.KAFKA, "cluster_id": self.kafka.cluster_id, "settings": dict(kafka.SETTINGS)},
            "postgres": {"version": self.postgres.version(), "settings": dict(postgres.SETTINGS)},
            "spark": {
                "version": importlib.metadata.version("pyspark"),
                "cores": self.spark.cores,
                "settings": dict(spark.SETTINGS),
            },
            "flags": {kind.value: list(flags) for kind, flags in self._flags.items()},
        }

    def down(self) -> None:
        """End everything that this stack started. Safe to call twice."""
        session, self._session = self._session, None
        if session is None:
            return
        if hasattr(self, "kafka"):
            self.kafka.topics.close()  # before its broker dies, or the client goes on knocking
        session.close()
        # A pipeline that fails may have told its executors' logs how it logs in.
        if hasattr(self, "postgres"):
            redact_folder(self.logs, (self.postgres.databases.password,))
        for part in ("kafka", "postgres", "spark"):
            if hasattr(self, part):
                getattr(self, part).close()
                delattr(self, part)

    def _make(self, session: Session) -> None:
        self.kafka = kafka.Kafka(
            session, self._java, self._jars, logs=self.logs, flags=self._flags[class_data.Kind.BROKER]
        )
        self.postgres = postgres.Postgres(session, logs=self.logs)
        self.spark = spark.Spark(
            session, self._java, logs=self.logs, executors=self._executors, flags=self._flags[class_data.Kind.DAEMON]
        )
