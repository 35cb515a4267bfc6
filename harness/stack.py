"""What every stack can do: come up, give each run its own resources, start drivers with them, go down.

One stack serves many runs. A run is isolated by its `RunResources`: a part of each component that it needs, such as a
topic and a schema, its own folder and its own checkpoint.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from harness.resources import Parts, RunResources
from harness.scenario import Pipeline, Victim


class Means(StrEnum):
    """One thing that a fault may need of a stack."""

    SIGNAL_DRIVER = "signal the driver"
    RESTART_ENDED = "start a program again that has ended well"
    SIGNAL_EXECUTORS = "signal the executors"
    CUT_NETWORK = "take a process off the network"
    RESTART_COMPONENTS = "stop a component and start it again"
    RESTART_DAEMONS = "stop a daemon of the cluster manager and start it again"
    HOLD_OPERATIONS = "hold an operation on the checkpoint"
    HOLD_REQUESTS = "hold a request to the server that keeps the checkpoint"


PROMISED_CORES = 64
"""What a Spark cluster of ours promises to executors. A promise, not a load: a killed driver's share is still counted
while the next one starts, and each run beside has one."""


@dataclass(frozen=True)
class Change:
    """One thing that the harness gives to Spark: a `setting` or a `variable`, its value, and why."""

    where: str
    name: str
    value: str
    why: str


class Process(Protocol):
    """What can be struck: a process of a run, or a container that is one. Two are equal if they are the same one."""

    @property
    def name(self) -> str:
        """How evidence names it."""

    @property
    def born(self) -> float:
        """When it began, in seconds since 1970; infinity once it is gone."""

    def send(self, what: signal.Signals) -> bool:
        """Signal it; False if it is gone. Raises HarnessError for what is of no run."""

    def alive(self) -> bool:
        """Return False once it is gone."""

    def stopped(self) -> bool:
        """Return True while it is stopped (SIGSTOP) or paused."""

    def family(self) -> Sequence[Process]:
        """It and everything under it; empty once it is gone."""

    def speaks_from(self, address: str, port: int) -> bool:
        """Return whether it holds the TCP socket with that local address and port."""


@runtime_checkable
class Host(Process, Protocol):
    """A process with its own network: a container."""

    def cut(self) -> bool:
        """Take it off the network that it shares with the others; False if it is gone."""

    def join(self) -> bool:
        """Put it back, under the same name and address; False if it is gone."""

    def disconnected(self) -> bool:
        """Return whether it is seen to have no network."""


class Driver(Protocol):
    """One attempt of the driver."""

    @property
    def number(self) -> int:
        """Counts attempts from 1."""

    @property
    def log(self) -> Path:
        """Where the program's output goes."""

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it lives."""

    def processes(self, victim: Victim = Victim.TREE) -> Sequence[Process]:
        """Return what dies of it when `victim` does, in the order to kill it in: JVMs before the Python program, since
        only a JVM commits batches. Empty once it is gone."""


@runtime_checkable
class TakesArchives(Protocol):
    """An ability of a stack: its JVMs start faster with class archives. `training` is the module that makes those, by
    `before(notify)` the stack is up, and `after(stack, notify)`."""

    training: str


@runtime_checkable
class RunsSparkVersions(Protocol):
    """An ability of a stack: drivers on other Spark versions than the installed one (`Pipeline.spark`)."""

    @property
    def spark_versions(self) -> Mapping[str, Mapping[str, Any]]:
        """What run.json records of each version that is up, by name."""

    def need(self, versions: Collection[str]) -> None:
        """Start those Spark versions that are not up yet. Raises StackError."""


@runtime_checkable
class HasNames(Protocol):
    """A driver that has names in a cluster manager."""

    def names(self) -> Mapping[str, str]:
        """Return those names, for the history: `application`, `container`."""


@runtime_checkable
class HasDiagnostics(Protocol):
    """A driver of whose end a cluster manager says more than a status."""

    def diagnostics(self) -> str:
        """Return its words, short and without secrets; empty where it has said nothing, or does not answer. They are
        for people: nothing is concluded from them."""


@dataclass(frozen=True)
class NoMore:
    """A cluster manager starts no other attempt: why, in words, and whether the program has ended well."""

    why: str
    well: bool = False


@runtime_checkable
class RestartsDrivers(Protocol):
    """An ability of a stack: its cluster manager starts the driver again, by its own policy. The stack watches the
    attempts there, and `launch` is called for the first one only."""

    def next_attempt(self, own: RunResources, *, after: Driver, log: Path) -> Driver | NoMore | None:
        """Return the attempt that the cluster manager has started after a dead one; None while it may still come; that
        it will not."""

    def holding(self, own: RunResources) -> AbstractContextManager[None]:
        """No attempt is started while this is held."""

    def end(self, own: RunResources) -> None:
        """From here on none is started. Silent if there was none. Raises StackError where that cannot be known."""


@runtime_checkable
class KeepsDaemons(Protocol):
    """An ability of a stack: daemons of its cluster manager can be killed, and come back on what they left."""

    @property
    def daemons(self) -> Mapping[str, Any]:
        """By name (`nodemanager`); each is a `harness.faults.base.outage.Restartable`."""


class Stack(Protocol):
    """Where runs take place. `name` is that of its kind."""

    name: str

    @property
    def servers(self) -> Mapping[str, Any]:
        """The components that are up, by name: each a `harness.component.Server`."""

    def up(self) -> None:
        """Start what every run needs, in parallel; return when each part answers its own protocol. Raises
        StackError."""

    def ensure(self, components: Collection[str]) -> None:
        """Start those of the components that are not up yet. Raises StackError, and UsageError for one that it cannot
        have."""

    def provide(self, run_id: str, parts: Parts, *, root: Path | None = None) -> RunResources:
        """Make the parts of one run and its folder; `root` is the folder that holds its pipeline's program. Raises
        StackError."""

    def release(self, own: RunResources, *, keep: bool = False) -> None:
        """Drop what `provide` made; `keep` leaves it for a human to read."""

    def launch(self, own: RunResources, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Start one attempt of the driver. Its placeholders are already filled in."""

    def changes(self, own: RunResources, pipeline: Pipeline) -> Sequence[Change]:
        """Return what Spark is given besides the pipeline's own settings and variables, for run.json. It holds no
        secret."""

    def executors(self, own: RunResources, *, attempt: int | None = None) -> Sequence[Process]:
        """Return the executor processes of this run's applications, oldest first; those of one attempt only where it is
        given."""

    def processes(self, own: RunResources, *, attempt: int | None = None) -> Sequence[Process]:
        """Return every living process of this run's pipeline, also one whose driver is dead; those of one attempt only
        where it is given."""

    def health(self) -> None:
        """Raise StackError, naming the part and its log's last lines, if a part died that no fault struck."""

    def describe(self, components: Collection[str] = ()) -> dict[str, Any]:
        """Return versions and settings, its own and those of the components, for run.json."""

    def down(self) -> None:
        """End everything that this stack started. Safe to call twice."""
