"""What every stack can do: come up, lease a room of its own to each run, start drivers in it, go down.

One stack serves many runs. A run is isolated by its `Lease`: a topic, a consumer group, a schema in each
database, a folder and a checkpoint of its own.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from harness.scenario import Pipeline, Victim


class Means(StrEnum):
    """One thing that a fault may need of a stack."""

    SIGNAL_DRIVER = "signal the driver"
    SIGNAL_EXECUTORS = "signal the executors"
    CUT_NETWORK = "take a process off the network"


MEANS: Mapping[str, frozenset[Means]] = {
    # The processes of one machine have one network.
    "processes": frozenset({Means.SIGNAL_DRIVER, Means.SIGNAL_EXECUTORS}),
    "containers": frozenset(Means),
    "external": frozenset({Means.SIGNAL_DRIVER}),
}
"""By the name of each stack, as `--stack` takes it."""


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """Where Kafka and Postgres are. `dsns` and `jdbc` go by database (`main`, `second`)."""

    bootstrap: str
    dsns: Mapping[str, str]
    jdbc: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Lease:
    """What one run may use. `bootstrap` and `dsns` are how the harness reaches it, `given` what its pipeline is given,
    whose processes may be elsewhere; the search path of each address is the run's schema.

    `root` holds the pipeline's program and what belongs to it; driver and executors see `folder` under the same path.
    `shared` says that the databases have other users.
    `environment` is what the pipeline's process gets on top of its own (PGHOST and so on, the run's marker);
    `secrets` are the values to redact wherever text leaves the run."""

    run_id: str
    topic: str
    group: str
    schema: str
    partitions: int
    bootstrap: str
    dsns: Mapping[str, str]
    given: Addresses
    spark_master: str
    spark_home: Path
    folder: Path
    checkpoint: Path
    root: Path | None = None
    shared: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()

    def placeholders(self) -> dict[str, str]:
        """What `{name}` in a pipeline's arguments, environment, conf and a scenario's SQL stands for."""
        out = {
            "kafka.bootstrap": self.given.bootstrap,
            "topic": self.topic,
            "group": self.group,
            "checkpoint": str(self.checkpoint),
            "folder": str(self.folder),
            "run": self.run_id,
            "schema": self.schema,
            "spark.master": self.spark_master,
            "spark.home": str(self.spark_home),
        }
        for database, dsn in self.given.dsns.items():
            which = "" if database == "main" else f".{database}"
            out[f"postgres{which}.dsn"] = dsn
            out[f"postgres{which}.jdbc"] = self.given.jdbc[database]
        return out


class Process(Protocol):
    """What can be hurt: a process of a run, or a container that is one. Two are equal if they are the same one."""

    @property
    def name(self) -> str:
        """How evidence names it."""

    @property
    def born(self) -> float:
        """When it began, in seconds since 1970; infinity once it is gone."""

    def send(self, what: signal.Signals) -> bool:
        """Signal it; False if it is gone. Raises HarnessError for what is of no run."""

    def lives(self) -> bool:
        """False once it is gone."""

    def stands(self) -> bool:
        """True while it stands still."""

    def family(self) -> Sequence[Process]:
        """It and everything under it; empty once it is gone."""

    def speaks_from(self, address: str, port: int) -> bool:
        """Does it hold the TCP socket with that local address and port?"""


@runtime_checkable
class Host(Process, Protocol):
    """A process with a network of its own: a container."""

    def cut(self) -> bool:
        """Take it off the network that it shares with the others; False if it is gone."""

    def join(self) -> bool:
        """Put it back, under the same name and address; False if it is gone."""

    def apart(self) -> bool:
        """Is it seen to have no network?"""


class Driver(Protocol):
    """One life of the pipeline."""

    @property
    def number(self) -> int:
        """Counts lives from 1."""

    @property
    def log(self) -> Path:
        """Where the program's output goes."""

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it lives."""

    def processes(self, victim: Victim = Victim.TREE) -> Sequence[Process]:
        """What dies of it when `victim` does, in the order to kill it in: JVMs before the Python program, since only a
        JVM commits batches. Empty once it is gone."""


class Stack(Protocol):
    """The world. `means` is what it can do to the processes of a run."""

    name: str
    means: frozenset[Means]

    def up(self) -> None:
        """Start everything, in parallel; return when each part answers its own protocol. Raises StackError."""

    def lease(self, run_id: str, *, partitions: int, root: Path | None = None) -> Lease:
        """Make the topic, schemas and folders of one run; `root` is the folder that holds its pipeline's program."""

    def release(self, lease: Lease, *, keep: bool = False) -> None:
        """Drop what `lease` made; `keep` leaves it for a human to look at."""

    def launch(self, lease: Lease, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one life of the pipeline. Its placeholders are already filled in."""

    def conf(self, lease: Lease, pipeline: Pipeline) -> dict[str, str]:
        """Spark's settings of a driver besides the pipeline's own, for run.json."""

    def executors(self, lease: Lease) -> Sequence[Process]:
        """The executor processes of this run's application, oldest first."""

    def processes(self, lease: Lease) -> Sequence[Process]:
        """Every living process of this run's pipeline, also one whose driver is dead."""

    def health(self) -> None:
        """Raise StackError, naming the part and its log's last lines, if a part died that nobody hurt."""

    def describe(self) -> dict[str, Any]:
        """Versions and settings, for run.json."""

    def down(self) -> None:
        """End everything that this stack started. Safe to call twice."""
