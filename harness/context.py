"""The run as a trigger and a fault see it, and where it stood when a trigger was met.

`harness.run` fills a `RunContext` in; an author of a trigger or a fault needs nothing else of a run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Protocol

from harness.history import History
from harness.hosts import signals
from harness.operation import Operation
from harness.remote.proxy.commits import HeldRequest, Wanted
from harness.resources import RunResources
from harness.scenario import COMMITTING, CrashPoint, Victim
from harness.snapshot import QueryState
from harness.stack import Driver, Process, Stack

Listing = dict[str, tuple[int, ...]]
"""The batches that a checkpoint lists, as `harness.checkpoint.listing` gives them."""


@dataclass(frozen=True)
class CheckpointEvent:
    """One protocol event of the checkpoint at `folder`. No point: the query has fixed where `source` begins."""

    point: CrashPoint | None
    batch: int
    folder: Path
    source: str = ""


Hook = Callable[[CheckpointEvent], Callable[[], None] | None]
"""Called with an event before the observer records it; what it returns is called afterwards."""


@dataclass(frozen=True)
class BlockedWriter:
    """A writer held at a row: the server's process for it, and the address and port its client speaks from."""

    backend: int
    client: tuple[str, int] | None
    rows: int


@dataclass(frozen=True)
class SinkCommit:
    """A sink's commit that is being written: a temporary file, and what it is renamed to. `query`: the one that feeds
    that sink, as the file names it; None where it names none."""

    temporary: Path
    final: Path
    query: str | None = None

    def pending(self) -> bool:
        """Return whether the one is there, and the other one is not. Read from the disk."""
        return self.temporary.exists() and not self.final.exists()


class HeldOperation:
    """An operation on a checkpoint whose thread stands still in Spark until `let_go()`."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self._free = threading.Event()

    def let_go(self) -> None:
        """Let the thread go on."""
        self._free.set()

    def wait(self, within_s: float) -> None:
        """Return once it was let go. For the thread that answers Spark's."""
        self._free.wait(within_s)


@dataclass
class Reached:
    """The trigger was met."""

    batch: int | None
    folder: Path | None = None
    """The checkpoint."""
    before: Listing = field(default_factory=dict)
    """Where the protocol stood."""
    frozen: list[Process] = field(default_factory=list)
    """The processes that were stopped there."""
    blocked: BlockedWriter | None = None
    """The writer that is held, and at which row."""
    step: int = 0
    """Counts the schedule's steps from 1."""
    commit: SinkCommit | None = None
    """The commit of the sink that is being written."""
    request: HeldRequest | None = None
    """The request to the checkpoint's store that is held."""
    operation: HeldOperation | None = None
    """The operation on the checkpoint that is held."""
    late: bool = False
    """It may have been met too late, as in a folder that is watched; the next batch is tried then."""
    sink: int | None = None
    """The place of the sink whose writer is held."""

    def with_sink(self, listing: Listing) -> Listing:
        """Return a listing, and whether the sink's commit that was met is being written right now."""
        if self.commit is None or self.batch is None:
            return listing
        return {**listing, COMMITTING: (self.batch,) if self.commit.pending() else ()}


class Drivers(Protocol):
    """The attempts of the pipeline: `harness.run.supervisor`."""

    driver: Driver | None

    @property
    def alive(self) -> bool:
        """Return whether there is a driver. False between a death and the restart."""

    @property
    def last_ended_by_fault(self) -> int:
        """The number of the last attempt that the schedule ended; 0 before the first."""

    def processes(self, victim: Victim = Victim.TREE) -> Sequence[Process]:
        """Return what dies of the present attempt when `victim` does; empty without one."""

    def leftovers(self) -> Sequence[Process]:
        """Return living processes of the run that are of an attempt before the present one."""

    def expect_death(self, number: int, left: list[Process]) -> None:
        """Attempt `number` is about to be ended by the schedule; `left` are those of its processes that live on."""

    def ending(self, number: int, *, within_s: float) -> int | None:
        """Return the exit status of attempt `number`, negative for a signal; None if it has not ended within that
        time."""

    def ended(self, number: int) -> bool:
        """Return whether that attempt is known to be dead."""

    def without_restarts(self) -> AbstractContextManager[None]:
        """Deaths are noted, and nothing is started again until this is left."""


class Checkpoint(Protocol):
    """One checkpoint: its folder, and the next offsets of each batch that it has planned."""

    folder: Path
    ends: dict[int, dict[int, int]]


class Checkpoints(Protocol):
    """What is known of the run's checkpoints: `harness.run.progress.observer`."""

    def armed(self, hook: Hook, *, query: str | None = None) -> AbstractContextManager[None]:
        """Call `hook` in the watching thread with every event of our queries, or of the one whose folder is `query`."""

    def holding(
        self, wanted: Callable[[Operation], bool], *, query: str | None = None
    ) -> AbstractContextManager[Callable[[], HeldOperation | None]]:
        """Hold the first `wanted` operation on a checkpoint of our queries, or of the one whose folder is `query`; what
        is given returns it once it is held."""

    def listing(self, folder: Path | None = None) -> Listing:
        """Return batches that it lists right now, straight from the disk, or from the server that keeps it; by default
        those of the attempt's first query. Raises StackError."""

    def settled(self, folder: Path | None = None) -> Listing:
        """Return the same of one whose writer is stopped or dead. By then no request of the writer to a server is on
        its way any more."""

    def took_nothing(self, folder: Path, batch: int) -> bool:
        """Return whether it is a batch without a record of the source."""

    def reported(self, folder: Path) -> bool:
        """Return whether the agent in Spark reports the checkpoint's operations; else its folder is watched."""

    def current(self) -> Sequence[Checkpoint]:
        """Return the checkpoints that count: those of the newest attempt with any."""

    def all(self) -> Sequence[Checkpoint]:
        """Return every checkpoint of a query that reads the source, in the order in which they were first seen."""

    def folder(self) -> Path | None:
        """Return the checkpoint of the newest attempt's first query."""

    def folders(self, query: str | None) -> list[Path]:
        """Return the checkpoints that count; or that of the query whose folder is called so."""

    def name(self, folder: Path) -> str:
        """Return how a checkpoint is called in what is kept."""

    def names(self) -> list[str]:
        """Return what the folders of all checkpoints are called."""

    def states(self) -> Sequence[QueryState]:
        """Return where each query stands right now. Raises StackError."""

    def newest_batch(self) -> int:
        """Return the highest batch planned so far; -1 before the first."""

    def unchanged_s(self) -> float:
        """Return seconds since the last event of any query."""


class SinkCommits(Protocol):
    """The sinks of a run that commit by renaming a file: `harness.run.sink_commits`."""

    def armed(self, hook: Callable[[SinkCommit], None], *, first: bool) -> AbstractContextManager[None]:
        """Call `hook` in the watching thread with every commit that begins; in the `first` attempt also with one that
        is being written already: no dead one can have left it."""


class Commits(Protocol):
    """The requests by which batches are planned and committed on a server: `harness.remote.proxy.commits`."""

    def armed(self, wanted: Wanted) -> AbstractContextManager[Callable[[], HeldRequest | None]]:
        """Hold the first such request; what is given tells which it is, None before."""


class RowBreakpoint(Protocol):
    """Counts the rows that a sink is handed, and holds their writer: such as the sink `postgres` does."""

    def rows(self) -> int:
        """Return how many rows the sink has been handed so far, committed or not."""

    def block_after(self, rows: int) -> None:
        """Hold the writer of the row after so many."""

    def blocked(self) -> BlockedWriter | None:
        """Return the writer that is held now, if any."""

    def release(self) -> None:
        """Hold nothing from now on, and let waiting writers go on."""

    def close(self) -> None:
        """Release every writer and disconnect."""


@dataclass(frozen=True, kw_only=True)
class CountedSink:
    """A sink whose rows are counted. `place` is its place in the scenario; `name` what a trigger calls it; `feeds` the
    folder name of the checkpoint of the query that feeds it, None if that is not known."""

    place: int
    name: str
    feeds: str | None
    rows: RowBreakpoint


class Snapshots(Protocol):
    """Keeps where everything stands: `harness.run.snapshots`."""

    def injection(self, reached: Reached, attempt: int, *, folder: Path | None) -> None:
        """The step struck an attempt that worked on the batch of the checkpoint at `folder`."""

    def note_writers(self, reached: Reached, *, folder: Path | None) -> None:
        """Remember for the next snapshot who writes now: the victims are frozen, and not dead yet."""

    def resuming(self, step: int, attempt: int) -> None:
        """Keep where everything stands before a driver that step `step` paused goes on."""

    def back(self, step: int, component: str) -> list[str]:
        """Keep the component's sinks once its server is back; return what is gone of each, in words."""

    def restart(self, step: int, attempt: int) -> None:
        """The attempt is dead: take the second snapshot before the next one works."""

    def before(self, place: int, folder: Path | None, batch: int | None) -> int | None:
        """Return how many rows the sink at `place` had been handed when the batch began."""


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The run as a schedule sees it.

    `in_flight`: words for the records that are in the source and not committed by the pipeline, empty if there
    are none. `hopeless`: why no trigger can be met any more, empty while one can. `sent`: records sent so far.
    `has_progress`: the driver lives and has done something in this attempt; before that there is nothing to strike.
    `commits`: what tells of its sinks' own commits, `requests`: of those that commit in its checkpoint on a server;
    None where no step asks for them. `counted`: the sinks whose rows a step counts. `only_checkpoint`: the component
    that keeps it, if it is neither the source's nor a sink's; else empty. `began_s`: when the schedule began, by the
    monotonic clock. `stop` ends every wait of the schedule."""

    stack: Stack
    own: RunResources
    supervisor: Drivers
    observer: Checkpoints
    history: History
    sent: Callable[[], int]
    in_flight: Callable[[], str]
    hopeless: Callable[[], str]
    has_progress: Callable[[], bool]
    snapshots: Snapshots | None = None
    commits: SinkCommits | None = None
    requests: Commits | None = None
    counted: Sequence[CountedSink] = ()
    only_checkpoint: str = ""
    began_s: float = field(default_factory=monotonic)
    stop: threading.Event = field(default_factory=threading.Event)

    def checkpoint_of(self, reached: Reached) -> Path | None:
        """Return the checkpoint whose batch it was; None where several queries may have worked on it."""
        current = self.observer.current()
        return reached.folder or (current[0].folder if len(current) == 1 else None)

    def release(self, reached: Reached) -> None:
        """Undo what was held: frozen processes, the sink's writer, an operation, a request."""
        signals.thaw(reached.frozen)
        if reached.operation is not None:
            reached.operation.let_go()
        for each in self.counted:
            if each.place == reached.sink:
                each.rows.release()
        if reached.request is not None:
            # What a dead driver had asked for is not done after its death.
            driver = self.supervisor.driver
            reached.request.let_go(drop=driver is None or self.supervisor.ended(driver.number))

    def snapshot(self, reached: Reached) -> None:
        """Keep where everything stands, now that anything was struck and before anything goes on."""
        if self.snapshots is not None:
            driver = self.supervisor.driver
            attempt = driver.number if driver else 0
            self.snapshots.injection(reached, attempt, folder=self.checkpoint_of(reached))

    def resuming(self, reached: Reached) -> None:
        """Keep where everything stands before a driver that was paused goes on."""
        if self.snapshots is not None and (driver := self.supervisor.driver):
            self.snapshots.resuming(reached.step, driver.number)

    def back(self, reached: Reached, component: str) -> list[str]:
        """Keep the component's sinks once its server is back; return what is gone of each, in words."""
        return [] if self.snapshots is None else self.snapshots.back(reached.step, component)

    def note_writers(self, reached: Reached) -> None:
        """Who writes, as long as they are there: the server rolls back what a dead client had open."""
        if self.snapshots is not None:
            self.snapshots.note_writers(reached, folder=self.checkpoint_of(reached))


def running(batch: int | None, listing: Listing) -> bool:
    """Planned and not committed."""
    return batch in listing.get("offsets", ()) and batch not in listing.get("commits", ())
